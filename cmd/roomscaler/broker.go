package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/roomscaler/roomscaler/broker/brokermetrics"
	"github.com/roomscaler/roomscaler/broker/httpapi"
)

// brokerOptions are the flags of the broker's side of a process.
type brokerOptions struct {
	poolOptions
	logOptions
	config        string
	listen        string
	metricsListen string
	tokenFile     string
	tls           tlsFiles
	delay         time.Duration
}

func (o *brokerOptions) flags(f *pflag.FlagSet) {
	o.poolOptions.flags(f)
	o.logOptions.flags(f)
	o.tls.flags(f, "", "the API")
	f.StringVar(&o.config, "config", "", "YAML file with flags' names as keys, and under pools a list of the same for several pools")
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "address of the API; without --token-file on loopback only")
	f.StringVar(&o.metricsListen, "metrics-listen", ":9090", "address of metrics and health; off = none")
	f.StringVar(&o.tokenFile, "token-file", "", "YAML file of bearer tokens and their scopes, TOKEN: SCOPE or TOKEN: {scope: SCOPE, pool: POOL}; scopes: application, instance, scaler, operator, metrics")
	f.DurationVar(&o.delay, "shutdown-delay", 0, "how long to go on serving after readiness has been turned off")
}

func brokerCommand() *cobra.Command {
	var o brokerOptions
	c := &cobra.Command{
		Use:   "broker",
		Short: "Serve the directory of rooms and the choice of instance",
		Long: `Serve the HTTP API: where rooms live, on which instance new ones go, which instances
take none. Keeps everything in its store; any number of brokers may share one.`,
		RunE: func(c *cobra.Command, _ []string) error {
			return runBroker(c.Context(), &o, c.Flags(), c.ErrOrStderr())
		},
	}
	o.flags(c.Flags())
	return c
}

func runBroker(ctx context.Context, o *brokerOptions, flags *pflag.FlagSet, stderr io.Writer) error {
	b, err := newBroker(o, configuration{path: o.config, flags: flags, pool: &o.poolOptions, fresh: func() (*pflag.FlagSet, *poolOptions) {
		o, f := &brokerOptions{}, pflag.NewFlagSet("", pflag.ContinueOnError)
		o.flags(f)
		return f, &o.poolOptions
	}}, stderr)
	if err != nil {
		return err
	}
	l := newLifecycle(b.log)
	err = b.start(ctx, l, o, nil)
	if err != nil {
		return errors.Join(err, l.end(context.WithoutCancel(ctx)))
	}
	return failure(l.run(ctx, o.delay, b.handler.Stop))
}

// brokerProcess is the broker's side of a process.
type brokerProcess struct {
	log      *slog.Logger
	registry *prometheus.Registry
	tokens   *httpapi.Tokens
	tls      *tls.Config
	config   *configuration
	pools    *pools
	handler  *httpapi.Handler
}

// newBroker puts everything together and starts nothing.
func newBroker(o *brokerOptions, config configuration, stderr io.Writer) (b *brokerProcess, err error) {
	b = &brokerProcess{config: &config}
	list, err := config.read()
	if err != nil {
		return nil, err
	}
	if b.log, err = o.logger(stderr); err != nil {
		return nil, err
	}
	if o.tokenFile == "" && !onLoopback(o.listen) {
		return nil, wrong("listen", "%s may be reached from other machines, and there are no tokens; give --token-file, or listen on 127.0.0.1", clip(o.listen))
	}
	if o.delay < 0 {
		return nil, wrong("shutdown-delay", "is negative; give a duration such as 5s, or 0s")
	}
	if o.tokenFile != "" {
		if b.tokens, err = httpapi.ReadTokens(o.tokenFile, b.log); err != nil {
			return nil, wrong("token-file", "%w", err)
		}
	}
	if b.tls, err = o.tls.config(b.log); err != nil {
		return nil, err
	}
	if b.registry, err = newRegistry(); err != nil {
		return nil, err
	}
	metrics, err := brokermetrics.New(b.registry)
	if err != nil {
		return nil, err
	}
	b.handler = httpapi.New(nil, httpapi.Options{
		Tokens: b.tokens, LocalHosts: b.tokens == nil, Metrics: metricsHandler(b.registry), Observe: metrics.Request, Log: b.log.With("component", "api"),
	})
	b.pools = &pools{log: b.log, registry: b.registry, metrics: metrics, handlers: []*httpapi.Handler{b.handler}}
	return b, b.pools.prepare(list)
}

// start listens, then sweeps and serves. before, if there is one, starts what is to end before the
// broker does. After an error the lifecycle's end is to be done.
func (b *brokerProcess) start(ctx context.Context, l *lifecycle, o *brokerOptions, before func() error) error {
	closePools := func(context.Context) error { return b.pools.close() }
	api, err := listen(ctx, "listen", o.listen)
	if err != nil {
		l.then("closing the stores", closePools)
		return err
	}
	stopMetrics, err := serveMetrics(ctx, l, b.log, o.metricsListen, b.metricsPort())
	if err != nil {
		l.then("closing the API", func(context.Context) error { return api.Close() })
		l.then("closing the stores", closePools)
		return err
	}
	b.pools.run(l)
	stopWatching := l.loop(func(ctx context.Context) {
		b.config.watch(ctx, b.log, func(list []*poolOptions) error { return b.pools.change(ctx, l, list) })
	})
	if before != nil {
		err = before()
	}
	s := httpServer(b.handler, b.log)
	l.then("draining the API", func(ctx context.Context) error { return errors.Join(s.Shutdown(ctx), ignoreClosed(api.Close())) })
	l.then("leaving the configuration alone", stopWatching)
	l.then("stopping the sweeps", b.pools.stop)
	l.then("closing the stores", closePools)
	l.then("stopping the metrics", stopMetrics)
	if err != nil {
		return err
	}
	l.serve("api", api.Addr().String(), func() error {
		if b.tls == nil {
			return s.Serve(api)
		}
		s.TLSConfig = b.tls
		return s.ServeTLS(api, "", "")
	})
	return nil
}

// metricsPort asks for a token where the token file has one for that; else it is open, as scrapers expect.
func (b *brokerProcess) metricsPort() http.Handler {
	m := http.NewServeMux()
	open := metricsHandler(b.registry)
	m.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if b.tokens != nil && b.tokens.Has(httpapi.ScopeMetrics) {
			b.handler.ServeHTTP(w, r)
			return
		}
		open.ServeHTTP(w, r)
	})
	m.Handle("GET /livez", b.handler)
	m.Handle("GET /readyz", b.handler)
	return m
}

// onLoopback is false for everything that is not surely loopback.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return true // listen says what is wrong with it
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// failure makes an error one of the work, not of the flags.
func failure(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code: exitFailure, err: err}
}
