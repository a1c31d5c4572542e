package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	servercmd "sigs.k8s.io/custom-metrics-apiserver/pkg/cmd"
	serveroptions "sigs.k8s.io/custom-metrics-apiserver/pkg/cmd/options"

	"github.com/roomscaler/roomscaler/scaler/adapter"
)

// defaultPort is one that needs no privilege.
const defaultPort = 6443

// options are the flags: those of every API server, by their usual names, and ours.
type options struct {
	server servercmd.AdapterBase
	broker brokerOptions
	config string
	format string
	level  string
}

func newOptions() *options {
	o := &options{}
	o.server.Name = "roomscaler-adapter"
	o.server.CustomMetricsAdapterServerOptions = serveroptions.NewCustomMetricsAdapterServerOptions()
	o.server.SecureServing.BindPort = defaultPort
	// It tells nobody how it spends its time unless asked to.
	o.server.Features.EnableProfiling = false
	return o
}

func (o *options) flags(f *pflag.FlagSet) {
	o.server.FlagSet = f
	o.server.InstallFlags()
	o.broker.flags(f)
	f.StringVar(&o.config, "config", "", "YAML file with the pools, each with the namespace of its autoscaler and the keys of a KEDA trigger (required)")
	f.StringVar(&o.format, "log-format", "json", "format of the log on stderr: json or text")
	f.StringVar(&o.level, "log-level", "info", "least level that is logged: debug, info, warn or error")
}

// setFromEnv sets the flags that were not given from the environment.
func setFromEnv(f *pflag.FlagSet, env []string) error {
	var errs []error
	f.VisitAll(func(f *pflag.Flag) {
		name := "ROOMSCALER_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		i := slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		if f.Changed || i < 0 || f.Name == "help" {
			return
		}
		value := strings.TrimPrefix(env[i], name+"=")
		if err := f.Value.Set(value); err != nil {
			errs = append(errs, &usageError{fmt.Errorf("%s: %q is not understood: %w", name, value, err)})
		}
	})
	return errors.Join(errs...)
}

func (o *options) pools() ([]adapter.Pool, error) {
	if o.config == "" {
		return nil, &usageError{errors.New("--config: is missing; give the file with the pools")}
	}
	raw, err := os.ReadFile(o.config)
	if err != nil {
		return nil, &usageError{fmt.Errorf("--config: %w", err)}
	}
	pools, err := adapter.ParsePools(raw)
	if err != nil {
		return nil, &usageError{fmt.Errorf("--config: %s: %w", o.config, err)}
	}
	return pools, nil
}

func (o *options) logger(w io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.level)); err != nil {
		return nil, &usageError{fmt.Errorf("--log-level: %q is none of debug, info, warn, error", o.level)}
	}
	h := &slog.HandlerOptions{Level: level}
	switch o.format {
	case "json":
		return slog.New(slog.NewJSONHandler(w, h)), nil
	case "text":
		return slog.New(slog.NewTextHandler(w, h)), nil
	}
	return nil, &usageError{fmt.Errorf("--log-format: %q is neither json nor text", o.format)}
}
