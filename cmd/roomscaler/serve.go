package main

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/broker/httpapi"
)

// serveOptions are the flags of the subcommand serve.
type serveOptions struct {
	brokerOptions
	scalerListen string
	scalerTLS    tlsFiles
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
	f := c.Flags()
	o.brokerOptions.flags(f)
	o.scalerTLS.flags(f, "scaler-", "the scaler's gRPC service")
	f.StringVar(&o.scalerListen, "scaler-listen", ":6000", "address of the scaler's gRPC service")
	return c
}

func runServe(ctx context.Context, o *serveOptions, flags *pflag.FlagSet, stderr io.Writer) error {
	b, err := newBroker(&o.brokerOptions, flags, stderr)
	if err != nil {
		return err
	}
	inner := httpapi.New(b.served, httpapi.Options{Observe: b.metrics.Request, Log: b.log.With("component", "api")})
	client, err := brokerapi.NewClient("http://in-process", nil, &http.Client{Transport: inProcess{inner}})
	if err != nil {
		return errors.Join(err, b.close())
	}
	s, err := newScaler(client, b.log, b.registry, &o.scalerTLS)
	if err != nil {
		return errors.Join(err, b.close())
	}
	l := newLifecycle(b.log)
	err = b.start(ctx, l, &o.brokerOptions, func() error {
		listener, err := listen(ctx, "scaler-listen", o.scalerListen)
		if err == nil {
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
