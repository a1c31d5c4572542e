package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/roomscaler/roomscaler/broker"
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
	b, err := newBroker(o, flags, stderr)
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

// brokerProcess is the broker's side of a process, put together but not yet running.
type brokerProcess struct {
	log      *slog.Logger
	registry *prometheus.Registry
	metrics  *brokermetrics.Metrics
	tokens   *httpapi.Tokens
	tls      *tls.Config
	services []*broker.Service
	served   map[string]httpapi.Served
	closers  []io.Closer
	handler  *httpapi.Handler
}

func newBroker(o *brokerOptions, flags *pflag.FlagSet, stderr io.Writer) (b *brokerProcess, err error) {
	pools, err := readConfig(o.config, flags, &o.poolOptions)
	if err != nil {
		return nil, err
	}
	b = &brokerProcess{served: map[string]httpapi.Served{}}
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
	if b.metrics, err = brokermetrics.New(b.registry); err != nil {
		return nil, err
	}
	for _, p := range pools {
		if err := b.addPool(p); err != nil {
			if len(pools) > 1 {
				err = fmt.Errorf("pool %s: %w", p.pool, err)
			}
			return nil, errors.Join(err, b.close())
		}
	}
	b.handler = httpapi.New(b.served, httpapi.Options{Tokens: b.tokens, Metrics: metricsHandler(b.registry), Observe: b.metrics.Request, Log: b.log.With("component", "api")})
	return b, nil
}

func (b *brokerProcess) addPool(o *poolOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	key, err := o.roomKey()
	if err != nil {
		return err
	}
	finder, err := openFinder(o)
	if err != nil {
		return err
	}
	backend, err := openBackend(o, key)
	if err != nil {
		return err
	}
	store, err := openStore(o)
	if err != nil {
		return err
	}
	if c, ok := store.(io.Closer); ok {
		b.closers = append(b.closers, c)
	}
	log := b.log.With("component", "broker", "pool", o.pool)
	s, err := broker.NewService(o.config(key), b.metrics.Store(o.pool, store), backend, finder, func(e broker.Event) {
		b.metrics.Event(e)
		logEvent(log, e)
	})
	if err != nil {
		return asFlag(err)
	}
	if o.janusAdminSecretFile == "" {
		log.Warn("the admin secret is the one that Janus comes with, which everybody knows; set another and give --janus-admin-secret-file")
	}
	b.services = append(b.services, s)
	b.served[o.pool] = httpapi.Served{Pool: countedPool{s, b.metrics}, URLs: o.urls()}
	return brokermetrics.WatchPool(b.registry, o.pool, s.Facts)
}

// countedPool counts what comes of creates.
type countedPool struct {
	*broker.Service
	metrics *brokermetrics.Metrics
}

func (p countedPool) CreateRoom(ctx context.Context, r broker.CreateRequest) (broker.Placed, bool, error) {
	placed, fresh, err := p.Service.CreateRoom(ctx, r)
	p.metrics.Created(p.Config().Pool, fresh, err)
	return placed, fresh, err
}

func (b *brokerProcess) close() error {
	var errs []error
	for _, c := range b.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// start listens, then sweeps and serves. The ends it adds come after those of before, which may be nil.
func (b *brokerProcess) start(ctx context.Context, l *lifecycle, o *brokerOptions, before func() error) error {
	api, err := listen(ctx, "listen", o.listen)
	if err != nil {
		return errors.Join(err, b.close())
	}
	stopMetrics, err := serveMetrics(ctx, l, b.log, o.metricsListen, b.metricsPort())
	if err != nil {
		return errors.Join(err, api.Close(), b.close())
	}
	stopLoops := b.sweep(l)
	if before != nil {
		err = before()
	}
	s := httpServer(b.handler, b.log)
	l.then("draining the API", func(ctx context.Context) error { return errors.Join(s.Shutdown(ctx), ignoreClosed(api.Close())) })
	l.then("stopping the sweeps", stopLoops)
	l.then("closing the stores", func(context.Context) error { return b.close() })
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

func (b *brokerProcess) sweep(l *lifecycle) (stop func(context.Context) error) {
	var stops []func(context.Context) error
	for _, s := range b.services {
		pool := s.Config().Pool
		log := b.log.With("component", "broker", "pool", pool)
		trouble := ""
		stops = append(stops, l.loop(func(ctx context.Context) {
			s.Run(ctx, func(r broker.SweepReport) {
				b.metrics.Swept(pool, r)
				switch {
				case r.Err == nil && trouble != "":
					log.Info("sweeps succeed again", "instances", r.Instances)
					trouble = ""
				case r.Err != nil && r.Err.Error() != trouble:
					trouble = r.Err.Error()
					log.Warn("sweep failed", "error", r.Err)
				}
			})
		}))
	}
	return func(ctx context.Context) error {
		var errs []error
		for _, stop := range stops {
			errs = append(errs, stop(ctx))
		}
		return errors.Join(errs...)
	}
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

func logEvent(log *slog.Logger, e broker.Event) {
	level := slog.LevelInfo
	switch e.Kind {
	case broker.RoomConflict, broker.InstanceSuspect, broker.InstanceLost, broker.InstanceReborn, broker.RebuildBegun:
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
