package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/discovery"
	"github.com/roomscaler/roomscaler/broker/discovery/kubernetes"
	"github.com/roomscaler/roomscaler/broker/janus"
	"github.com/roomscaler/roomscaler/broker/memstore"
	"github.com/roomscaler/roomscaler/broker/redisstore"
)

// What can be plugged in, by the name that a flag gives it. A new kind is a line here.

// stores open a store by the scheme of --store.
var stores = map[string]func(o *poolOptions) (broker.Store, error){
	"memory":          openMemory,
	"redis":           openRedis,
	"rediss":          openRedis,
	"redis+sentinel":  openRedis,
	"rediss+sentinel": openRedis,
	"redis+cluster":   openRedis,
	"rediss+cluster":  openRedis,
}

// backends make a backend by the name in --backend.
var backends = map[string]func(o *poolOptions, key broker.RoomKey) (broker.Backend, error){
	"janus": func(o *poolOptions, key broker.RoomKey) (broker.Backend, error) {
		adminKey := ""
		if o.janusAdminKeyFile != "" {
			var err error
			if adminKey, err = readSecret("janus-admin-key-file", o.janusAdminKeyFile); err != nil {
				return nil, err
			}
		}
		secret, err := o.adminSecret()
		if err != nil {
			return nil, err
		}
		return janus.New(janus.Options{AdminSecret: secret, AdminKey: adminKey, Key: key}), nil
	},
}

// finders make a finder by what stands before the colon in --discover.
var finders = map[string]func(spec string) (broker.Finder, error){
	"static": func(spec string) (broker.Finder, error) { return discovery.ParseStatic(spec) },
	"dns":    func(spec string) (broker.Finder, error) { return discovery.ParseDNS(spec) },
	"kubernetes": func(spec string) (broker.Finder, error) {
		place, err := kubernetes.Parse(spec)
		if err != nil {
			return nil, err
		}
		c, err := kubernetes.Connect()
		if err != nil {
			return nil, err
		}
		return kubernetes.New(place, c), nil
	},
}

// watcher is a finder that must run to find anything.
type watcher interface {
	Run(ctx context.Context)
}

func openMemory(o *poolOptions) (broker.Store, error) {
	if o.store != "memory://" {
		return nil, wrong("store", "a store in memory has no address; write memory://")
	}
	return memstore.New(memstore.Options{StepCap: 2 * o.sweepInterval}), nil
}

func openRedis(o *poolOptions) (broker.Store, error) {
	s, err := redisstore.Open(o.store, redisstore.Options{Pool: o.pool, StepCap: 2 * o.sweepInterval})
	var bad *broker.InvalidError
	if errors.As(err, &bad) {
		return nil, wrong("store", "%s", strings.TrimPrefix(bad.Error(), "store: "))
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func openStore(o *poolOptions) (broker.Store, error) {
	scheme, _, ok := strings.Cut(o.store, "://")
	open := stores[scheme]
	if !ok || open == nil {
		return nil, wrong("store", "is no URL of a store; give memory:// or redis://HOST:6379 (schemes: %s)", names(stores))
	}
	return open(o)
}

func openBackend(o *poolOptions, key broker.RoomKey) (broker.Backend, error) {
	open := backends[o.backend]
	if open == nil {
		return nil, wrong("backend", "there is no %q; there is %s", clip(o.backend), names(backends))
	}
	return open(o, key)
}

const finderForms = "static:NAME=URL,…, dns:HOST:PORT or kubernetes:NAMESPACE/SERVICE"

func openFinder(o *poolOptions) (broker.Finder, error) {
	if o.discover == "" {
		return nil, wrong("discover", "is missing; give "+finderForms)
	}
	kind, spec, _ := strings.Cut(o.discover, ":")
	open := finders[kind]
	if open == nil {
		return nil, wrong("discover", "there is no finder %q; give "+finderForms, clip(kind))
	}
	f, err := open(spec)
	if err != nil {
		return nil, asFlag(err)
	}
	return f, nil
}

func names[V any](m map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}
