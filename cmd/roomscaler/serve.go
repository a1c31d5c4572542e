package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/broker/httpapi"
)

// serveOptions are the flags of the subcommand serve.
type serveOptions struct {
	brokerOptions
	scalerListen  string
	scalerTLS     tlsFiles
	kubernetes    bool
	connectionAge time.Duration
}

func serveCommand() *cobra.Command {
	var o serveOptions
	c := &cobra.Command{
		Use:   "serve",
		Short: "Broker and scaler in one process: the quick start",
		Long: `Run a broker and a scaler in one process. The scaler calls the broker as it would from
outside, but within the process and without a token.`,
		RunE: func(c *cobra.Command, _ []string) error { return runServe(c.Context(), &o, c.Flags(), c.ErrOrStderr()) },
	}
	o.flags(c.Flags())
	return c
}

func (o *serveOptions) flags(f *pflag.FlagSet) {
	o.brokerOptions.flags(f)
	o.scalerTLS.flags(f, "scaler-", "the scaler's gRPC service")
	kubernetesFlag(f, &o.kubernetes)
	connectionAgeFlag(f, "scaler-", &o.connectionAge)
	f.StringVar(&o.scalerListen, "scaler-listen", ":6000", "address of the scaler's gRPC service; whoever reaches it can scale pools: give --scaler-tls-client-ca, or let only KEDA through")
}

func runServe(ctx context.Context, o *serveOptions, flags *pflag.FlagSet, stderr io.Writer) error {
	b, err := newBroker(&o.brokerOptions, configuration{path: o.config, flags: flags, pool: &o.poolOptions, fresh: func() (*pflag.FlagSet, *poolOptions) {
		o, f := &serveOptions{}, pflag.NewFlagSet("", pflag.ContinueOnError)
		o.flags(f)
		return f, &o.poolOptions
	}}, stderr)
	if err != nil {
		return err
	}
	inner := httpapi.New(nil, httpapi.Options{Observe: b.pools.metrics.Request, Log: b.log.With("component", "api")})
	b.pools.handlers = append(b.pools.handlers, inner)
	b.pools.publish()
	client, err := brokerapi.NewClient("http://in-process", nil, &http.Client{Transport: inProcess{inner}})
	if err != nil {
		return errors.Join(err, b.pools.close())
	}
	s, err := newScaler(client, b.log, b.registry, &o.scalerTLS, o.connectionAge, o.kubernetes)
	if err != nil {
		return errors.Join(err, b.pools.close())
	}
	l := newLifecycle(b.log)
	err = b.start(ctx, l, &o.brokerOptions, func() error {
		listener, err := listen(ctx, "scaler-listen", o.scalerListen)
		if err == nil {
			warnOpen(b.log, o.scalerListen, &o.scalerTLS)
			s.start(l, listener)
		}
		return err
	})
	if err != nil {
		return errors.Join(err, l.end(context.WithoutCancel(ctx)))
	}
	return failure(l.run(ctx, o.delay, func() {
		b.handler.Stop()
		s.unready()
	}))
}
