package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// readConfig sets, from a YAML file, the flags that neither the command line nor the environment gave, and returns the pools. The
// file's keys are the flags' names. Under "pools" is a list of the same for each pool, where what is not said is as
// outside of it:
//
//	store: redis://redis:6379
//	pools:
//	  - pool: video
//	    discover: dns:janus.video.svc.cluster.local:7088
//	  - pool: audio
//	    discover: dns:janus.audio.svc.cluster.local:7088
//
// Without a file, or without "pools", there is the one pool that base says.
func readConfig(path string, flags *pflag.FlagSet, base *poolOptions) ([]*poolOptions, error) {
	if path == "" {
		return []*poolOptions{base}, nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, wrong("config", "%w", err)
	}
	var doc struct {
		Pools []map[string]yaml.Node `yaml:"pools"`
		Flags map[string]yaml.Node   `yaml:",inline"`
	}
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	if err := dec.Decode(&doc); err != nil {
		return nil, wrong("config", "%s is not understood: %w", path, err)
	}
	given := map[string]bool{}
	flags.Visit(func(f *pflag.Flag) { given[f.Name] = true })
	if err := setFromFile(path, flags, doc.Flags, given); err != nil {
		return nil, err
	}
	if doc.Pools == nil {
		return []*poolOptions{base}, nil
	}
	if len(doc.Pools) == 0 {
		return nil, wrong("config", "%s: pools is empty; name at least one, or leave it out", path)
	}
	var pools []*poolOptions
	seen := map[string]bool{}
	for i, entry := range doc.Pools {
		o, own := &poolOptions{}, pflag.NewFlagSet("", pflag.ContinueOnError)
		o.flags(own)
		*o = *base
		if err := setFromFile(path, own, entry, nil); err != nil {
			return nil, err
		}
		if _, ok := entry["pool"]; !ok || seen[o.pool] {
			return nil, wrong("config", "%s: pool %d has no name of its own; give each a different pool: NAME", path, i+1)
		}
		seen[o.pool] = true
		pools = append(pools, o)
	}
	return pools, nil
}

func setFromFile(path string, flags *pflag.FlagSet, values map[string]yaml.Node, given map[string]bool) error {
	for name, v := range values {
		f := flags.Lookup(name)
		if f == nil || name == "config" || name == "help" {
			return wrong("config", "%s line %d: there is no %q here; the keys are flags' names without --", path, v.Line, clip(name))
		}
		if v.Kind != yaml.ScalarNode {
			return wrong("config", "%s line %d: %s is no single value", path, v.Line, name)
		}
		if given[name] {
			continue
		}
		if err := flags.Set(name, v.Value); err != nil {
			return usage(fmt.Errorf("--config: %s line %d: %s: %s", path, v.Line, name, wrongValue(f, v.Value)))
		}
	}
	return nil
}
