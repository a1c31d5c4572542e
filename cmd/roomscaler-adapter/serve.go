package main

import (
	"context"
	"fmt"
	"io"

	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"github.com/roomscaler/roomscaler/scaler"
	"github.com/roomscaler/roomscaler/scaler/adapter"
)

// serve answers the metrics API until ctx ends.
func serve(ctx context.Context, o *options, stderr io.Writer) error {
	log, err := o.logger(stderr)
	if err != nil {
		return err
	}
	klog.SetSlogLogger(log.With("component", "apiserver"))
	pools, err := o.pools()
	if err != nil {
		return err
	}
	client, err := o.broker.client()
	if err != nil {
		return err
	}
	s, err := scaler.New(scaler.Options{Source: client, Logger: log, Registerer: legacyregistry.Registerer()})
	if err != nil {
		return fmt.Errorf("registering the metrics: %w", err)
	}
	o.server.WithExternalMetrics(adapter.NewProvider(pools, client, s))
	server, err := o.server.Server()
	if err != nil {
		return fmt.Errorf("preparing the API server: %w", err)
	}
	planning, stop := context.WithCancel(context.WithoutCancel(ctx))
	planned := make(chan struct{})
	go func() {
		defer close(planned)
		s.Run(planning)
	}()
	log.Info("serving the external metrics API", "pools", len(pools), "port", o.server.SecureServing.BindPort)
	err = server.GenericAPIServer.PrepareRun().RunWithContext(ctx)
	stop()
	<-planned
	if err != nil {
		return fmt.Errorf("serving the external metrics API: %w", err)
	}
	return nil
}
