package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// configuration is where a broker's flags come from. The file of --config is YAML and has the flags' names as keys. Under
// "pools" is a list of the same for each pool, where what is not said is as outside of it:
//
//	store: redis://redis:6379
//	pools:
//	  - pool: video
//	    discover: dns:janus.video.svc.cluster.local:7088
//	  - pool: audio
//	    discover: dns:janus.audio.svc.cluster.local:7088
//
// Without a file, or without "pools", there is the one pool that the flags say.
type configuration struct {
	path  string
	flags *pflag.FlagSet // as given on the command line and in the environment
	pool  *poolOptions   // that flags sets
	fresh func() (*pflag.FlagSet, *poolOptions)

	given map[string]string // before the file was read
	raw   []byte
}

// configEvery is how often the file is looked at for changes.
const configEvery = 2 * time.Second

// read sets the flags that were not given from the file, and returns the pools.
func (c *configuration) read() ([]*poolOptions, error) {
	c.given = map[string]string{}
	c.flags.Visit(func(f *pflag.Flag) { c.given[f.Name] = f.Value.String() })
	if c.path == "" {
		return []*poolOptions{c.pool}, nil
	}
	raw, err := os.ReadFile(c.path)
	if err != nil {
		return nil, wrong("config", "%w", err)
	}
	c.raw = raw
	return c.parse(raw, c.flags, c.pool)
}

// watch has the pools changed whenever the file has changed, until ctx ends. What is wrong with it is logged, and all stays
// as it was.
func (c *configuration) watch(ctx context.Context, log *slog.Logger, change func([]*poolOptions) error) {
	if c.path == "" {
		return
	}
	ticks := time.NewTicker(configEvery)
	defer ticks.Stop()
	unreadable := false
	var seen []byte
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		raw, err := os.ReadFile(c.path)
		if err != nil {
			if !unreadable {
				log.Error("configuration cannot be read again; all stays as it was", "path", c.path, "error", err)
			}
			unreadable = true
			continue
		}
		unreadable = false
		if bytes.Equal(raw, c.raw) {
			continue
		}
		// What is read for the first time may be half written; an empty file would be a valid one.
		if !bytes.Equal(raw, seen) {
			seen = raw
			continue
		}
		c.raw = raw
		if err := c.again(raw, log, change); err != nil {
			log.Error("configuration has changed and is wrong; all stays as it was", "path", c.path, "error", err)
		}
	}
}

func (c *configuration) again(raw []byte, log *slog.Logger, change func([]*poolOptions) error) error {
	flags, pool := c.fresh()
	for name, v := range c.given {
		if err := flags.Set(name, v); err != nil {
			return err
		}
	}
	list, err := c.parse(raw, flags, pool)
	if err != nil {
		return err
	}
	ofPool := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(poolOptions).flags(ofPool)
	flags.VisitAll(func(f *pflag.Flag) {
		if ofPool.Lookup(f.Name) == nil && f.Value.String() != c.flags.Lookup(f.Name).Value.String() {
			log.Warn("this change takes effect with a restart only", "path", c.path, "flag", f.Name)
		}
	})
	return change(list)
}

func (c *configuration) parse(raw []byte, flags *pflag.FlagSet, base *poolOptions) ([]*poolOptions, error) {
	var doc struct {
		Pools []map[string]yaml.Node `yaml:"pools"`
		Flags map[string]yaml.Node   `yaml:",inline"`
	}
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, wrong("config", "%s is not understood: %w", c.path, err)
	}
	if err := setFromFile(c.path, flags, doc.Flags, c.given); err != nil {
		return nil, err
	}
	if doc.Pools == nil {
		return []*poolOptions{base}, nil
	}
	if len(doc.Pools) == 0 {
		return nil, wrong("config", "%s: pools is empty; name at least one, or leave it out", c.path)
	}
	var list []*poolOptions
	seen := map[string]bool{}
	for i, entry := range doc.Pools {
		o, own := &poolOptions{}, pflag.NewFlagSet("", pflag.ContinueOnError)
		o.flags(own)
		*o = *base
		if err := setFromFile(c.path, own, entry, nil); err != nil {
			return nil, err
		}
		if _, ok := entry["pool"]; !ok || seen[o.pool] {
			return nil, wrong("config", "%s: pool %d has no name of its own; give each a different pool: NAME", c.path, i+1)
		}
		seen[o.pool] = true
		list = append(list, o)
	}
	return list, nil
}

func setFromFile(path string, flags *pflag.FlagSet, values map[string]yaml.Node, given map[string]string) error {
	for name, v := range values {
		f := flags.Lookup(name)
		if f == nil || name == "config" || name == "help" {
			return wrong("config", "%s line %d: there is no %q here; the keys are flags' names without --", path, v.Line, clip(name))
		}
		if v.Kind != yaml.ScalarNode {
			return wrong("config", "%s line %d: %s is no single value", path, v.Line, name)
		}
		if _, ok := given[name]; ok {
			continue
		}
		if err := flags.Set(name, v.Value); err != nil {
			return usage(fmt.Errorf("--config: %s line %d: %s: %s", path, v.Line, name, wrongValue(f, v.Value)))
		}
	}
	return nil
}
