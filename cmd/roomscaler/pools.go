package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/brokermetrics"
	"github.com/roomscaler/roomscaler/broker/httpapi"
)

// pools are the pools of a broker process. Its methods are not called concurrently.
type pools struct {
	log      *slog.Logger
	registry *prometheus.Registry
	metrics  *brokermetrics.Metrics
	handlers []*httpapi.Handler // that serve the pools
	now      map[string]*pool
}

// pool is one pool in this process.
type pool struct {
	clients httpapi.Served // all but the Pool: what pins tell clients
	o       poolOptions
	log     *slog.Logger
	store   broker.Store
	service *broker.Service
	finder  broker.Finder
	gauges  prometheus.Collector
	stop    func(context.Context) error // its sweeps; nil before they run
}

// prepare makes the pools as they are at the start of the process.
func (ps *pools) prepare(list []*poolOptions) error {
	next, err := ps.make(list)
	if err != nil {
		return err
	}
	ps.now = next
	ps.publish()
	for _, p := range next {
		if err := ps.registry.Register(p.gauges); err != nil {
			return errors.Join(err, ps.close())
		}
	}
	return nil
}

// make makes those pools that are new or changed and takes the others as they are. After an
// error nothing of it is left.
func (ps *pools) make(list []*poolOptions) (map[string]*pool, error) {
	next := map[string]*pool{}
	for _, o := range list {
		old := ps.now[o.pool]
		if old != nil && old.o == *o {
			next[o.pool] = old
			continue
		}
		p, err := ps.makePool(o, old)
		if err != nil {
			if len(list) > 1 {
				err = fmt.Errorf("pool %s: %w", o.pool, err)
			}
			return nil, errors.Join(err, closeUnless(next, ps.now))
		}
		next[o.pool] = p
	}
	return next, nil
}

// makePool uses the store of the pool as it was, where that is the same.
func (ps *pools) makePool(o *poolOptions, old *pool) (*pool, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	key, err := o.roomKey()
	if err != nil {
		return nil, err
	}
	finder, err := openFinder(o)
	if err != nil {
		return nil, err
	}
	backend, err := openBackend(o, key)
	if err != nil {
		return nil, err
	}
	clients, err := o.clients()
	if err != nil {
		return nil, err
	}
	p := &pool{o: *o, clients: clients, finder: finder, log: ps.log.With("component", "broker", "pool", o.pool)}
	if old != nil && old.o.store == o.store && old.o.sweepInterval == o.sweepInterval {
		p.store = old.store
	} else if p.store, err = openStore(o); err != nil {
		return nil, err
	}
	p.service, err = broker.NewService(o.config(key), ps.metrics.Store(o.pool, p.store), backend, finder, func(e broker.Event) {
		ps.metrics.Event(e)
		logEvent(p.log, e)
	})
	if err != nil {
		return nil, errors.Join(asFlag(err), closeUnless(map[string]*pool{o.pool: p}, ps.now))
	}
	p.gauges = brokermetrics.PoolGauges(o.pool, p.service.Facts)
	if o.janusAdminSecretFile == "" {
		p.log.Warn("the admin secret is the one that Janus comes with, which everybody knows; set another and give --janus-admin-secret-file")
	}
	return p, nil
}

// run begins the sweeps of the pools that have none yet.
func (ps *pools) run(l *lifecycle) {
	for _, p := range ps.now {
		if p.stop == nil {
			p.stop = l.loop(func(ctx context.Context) {
				var watch sync.WaitGroup
				if w, ok := p.finder.(watcher); ok {
					watch.Go(func() { w.Run(ctx) })
				}
				p.sweep(ctx, ps.metrics)
				watch.Wait()
			})
		}
	}
}

func (p *pool) sweep(ctx context.Context, m *brokermetrics.Metrics) {
	trouble := ""
	p.service.Run(ctx, func(r broker.SweepReport) {
		m.Swept(p.o.pool, r)
		switch {
		case r.Err == nil && trouble != "":
			p.log.Info("sweeps succeed again", "instances", r.Instances)
			trouble = ""
		case r.Err != nil && r.Err.Error() != trouble:
			trouble = r.Err.Error()
			p.log.Warn("sweep failed", "error", r.Err)
		}
	})
}

// change brings the pools to what the list says, those that it does not change undisturbed. A changed one
// is handed over at once: until its first sweep it refuses creates as a starting broker does.
// After an error all is as before.
func (ps *pools) change(ctx context.Context, l *lifecycle, list []*poolOptions) error {
	next, err := ps.make(list)
	if err != nil {
		return err
	}
	old := ps.now
	ps.now = next
	var errs []error
	for name, p := range old {
		if next[name] != p {
			ps.registry.Unregister(p.gauges)
		}
	}
	for name, p := range next {
		if old[name] != p {
			errs = append(errs, ps.registry.Register(p.gauges))
		}
	}
	ps.run(l)
	ps.publish()
	ps.log.Info("configuration taken over", "pools", slices.Sorted(maps.Keys(next)))
	for name, p := range old {
		if next[name] != p {
			errs = append(errs, p.stop(ctx))
		}
	}
	return errors.Join(append(errs, closeUnless(old, next))...)
}

func (ps *pools) publish() {
	served := map[string]httpapi.Served{}
	for name, p := range ps.now {
		s := p.clients
		s.Pool = countedPool{p.service, ps.metrics}
		served[name] = s
	}
	for _, h := range ps.handlers {
		h.SetPools(served)
	}
}

// stop ends the sweeps.
func (ps *pools) stop(ctx context.Context) error {
	var errs []error
	for _, p := range ps.now {
		errs = append(errs, p.stop(ctx))
	}
	return errors.Join(errs...)
}

// close closes the stores.
func (ps *pools) close() error { return closeUnless(ps.now, nil) }

// closeUnless closes the stores of pools, except those that others use.
func closeUnless(pools, others map[string]*pool) error {
	var errs []error
	for _, p := range pools {
		used := false
		for _, o := range others {
			used = used || o.store == p.store
		}
		if c, ok := p.store.(io.Closer); ok && !used {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// countedPool counts what comes of creates.
type countedPool struct {
	*broker.Service
	metrics *brokermetrics.Metrics
}

func (p countedPool) CreateRoomWithin(ctx context.Context, r broker.CreateRequest, wait time.Duration) (broker.Placed, bool, error) {
	placed, fresh, err := p.Service.CreateRoomWithin(ctx, r, wait)
	p.metrics.Created(p.Config().Pool, fresh, err)
	return placed, fresh, err
}

func logEvent(log *slog.Logger, e broker.Event) {
	level := slog.LevelInfo
	switch e.Kind {
	case broker.RoomConflict, broker.FinderEmpty, broker.InstanceFault, broker.InstanceSuspect, broker.InstanceLost, broker.InstanceReborn, broker.RebuildBegun:
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{slog.String("kind", string(e.Kind))}
	if e.Instance != "" {
		attrs = append(attrs, slog.String("instance", e.Instance))
	}
	if e.Room != "" {
		attrs = append(attrs, slog.String("room", e.Room), slog.Int64("epoch", int64(e.Epoch)))
	}
	if e.Detail != "" {
		attrs = append(attrs, slog.String("detail", e.Detail))
	}
	log.LogAttrs(context.Background(), level, "event", attrs...)
}
