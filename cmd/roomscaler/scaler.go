package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/roomscaler/roomscaler/scaler"
	"github.com/roomscaler/roomscaler/scaler/kube"
)

// scalerOptions are the flags of the subcommand scaler.
type scalerOptions struct {
	logOptions
	broker        brokerClientOptions
	listen        string
	metricsListen string
	tls           tlsFiles
	delay         time.Duration
	kubernetes    bool
	connectionAge time.Duration
}

func scalerCommand() *cobra.Command {
	var o scalerOptions
	c := &cobra.Command{
		Use:   "scaler",
		Short: "Answer KEDA with the number of instances (gRPC external scaler)",
		Long: `Answer KEDA's external scaler calls. Decides by the facts of a broker, stores the
decision there and answers what is stored; any number of scalers may run. Everything
about a pool is said in the trigger's metadata.`,
		RunE: func(c *cobra.Command, _ []string) error { return runScaler(c.Context(), &o, c.ErrOrStderr()) },
	}
	f := c.Flags()
	o.logOptions.flags(f)
	o.broker.flags(f, "scaler")
	o.tls.flags(f, "", "the gRPC service")
	f.StringVar(&o.listen, "listen", ":6000", "address of the gRPC service; whoever reaches it can scale pools: give --tls-client-ca, or let only KEDA through")
	f.StringVar(&o.metricsListen, "metrics-listen", ":9090", "address of metrics and health; off = none")
	kubernetesFlag(f, &o.kubernetes)
	connectionAgeFlag(f, "", &o.connectionAge)
	f.DurationVar(&o.delay, "shutdown-delay", 0, "how long to go on serving after readiness has been turned off")
	return c
}

func kubernetesFlag(f *pflag.FlagSet, on *bool) {
	f.BoolVar(on, "kubernetes", false, "read StatefulSets, pods and autoscalers of the ScaledObjects that call, by KUBECONFIG or the pod's service account")
}

func runScaler(ctx context.Context, o *scalerOptions, stderr io.Writer) error {
	log, err := o.logger(stderr)
	if err != nil {
		return err
	}
	if o.delay < 0 {
		return wrong("shutdown-delay", "is negative; give a duration such as 5s, or 0s")
	}
	client, err := o.broker.client()
	if err != nil {
		return err
	}
	registry, err := newRegistry()
	if err != nil {
		return err
	}
	s, err := newScaler(client, log, registry, &o.tls, o.connectionAge, o.kubernetes)
	if err != nil {
		return err
	}
	listener, err := listen(ctx, "listen", o.listen)
	if err != nil {
		return err
	}
	warnOpen(log, o.listen, &o.tls)
	l := newLifecycle(log)
	stopMetrics, err := serveMetrics(ctx, l, log, o.metricsListen, s.metricsPort(registry))
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	s.start(l, listener)
	l.then("stopping the metrics", stopMetrics)
	return failure(l.run(ctx, o.delay, s.unready))
}

// warnOpen tells of a gRPC service that anybody may call: KEDA shows no token, so a certificate or the network must keep
// others away. A caller names the ScaledObject and its metadata itself, and so could scale a pool.
func warnOpen(log *slog.Logger, address string, files *tlsFiles) {
	if files.clientCA == "" && !onLoopback(address) {
		log.Warn("anybody who reaches the scaler can scale pools; give --"+files.prefix+"tls-client-ca, or let only KEDA through (NetworkPolicy)", "address", address)
	}
}

// scalerProcess is the scaler's side of a process.
type scalerProcess struct {
	scaler   *scaler.Scaler
	watcher  *kube.Watcher // nil: Kubernetes is not read
	server   *grpcServer
	stopping atomic.Bool
}

func newScaler(source scaler.Source, log *slog.Logger, r prometheus.Registerer, files *tlsFiles, age time.Duration, kubernetes bool) (*scalerProcess, error) {
	o := scaler.Options{Source: source, Logger: log, Registerer: r}
	var watcher *kube.Watcher
	if kubernetes {
		client, err := kube.Connect()
		if err != nil {
			return nil, wrong("kubernetes", "%w", err)
		}
		watcher = kube.New(client, log)
		o.Cluster = watcher
	}
	s, err := scaler.New(o)
	if err != nil {
		return nil, err
	}
	server, err := newGRPCServer(files, age, log)
	if err != nil {
		return nil, err
	}
	s.Register(server)
	server.ready()
	p := &scalerProcess{scaler: s, watcher: watcher, server: server}
	return p, nil
}

// start plans and serves. Planning ends first: that ends the open streams, for which the server waits.
func (p *scalerProcess) start(l *lifecycle, listener net.Listener) {
	l.then("stopping the planners", l.loop(p.scaler.Run))
	if p.watcher != nil {
		l.then("stopping the watches of Kubernetes", l.loop(p.watcher.Run))
	}
	l.then("draining the scaler", p.server.stop)
	l.serve("scaler", listener.Addr().String(), func() error { return p.server.Serve(listener) })
}

func (p *scalerProcess) unready() {
	p.stopping.Store(true)
	p.server.health.Shutdown()
}

// metricsPort serves health that is local: a broker that is away is told to KEDA, and no reason to restart a scaler.
func (p *scalerProcess) metricsPort(r *prometheus.Registry) http.Handler {
	m := http.NewServeMux()
	m.Handle("GET /metrics", metricsHandler(r))
	m.Handle("GET /explain", explainHandler(p.scaler))
	m.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "alive\n") })
	m.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if p.stopping.Load() {
			http.Error(w, "stopping", http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, "ready\n")
	})
	return m
}
