package demo

import (
	"context"
	"fmt"
	"net"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/test/lab/naive"
)

// startScaler starts the product's scaler, or the naive one within this process.
func (w *world) startScaler(ctx context.Context) error {
	if w.naive {
		return w.startNaive(ctx)
	}
	listen, metrics, err := twoAddresses()
	if err != nil {
		return err
	}
	w.scaler = listen
	return w.spawn(ctx, "scaler", "http://"+metrics+brokerapi.PathLive, "scaler", "--listen", listen, "--metrics-listen", metrics, "--broker", w.urls[0])
}

func (w *world) startNaive(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening for the naive scaler: %w", err)
	}
	s := grpc.NewServer()
	externalscaler.RegisterExternalScalerServer(s, &naive.Scaler{Target: w.o.target(), Sessions: w.sessions})
	w.scaler = l.Addr().String()
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := s.Serve(l); err != nil {
			w.fail(fmt.Errorf("serving the naive scaler: %w", err))
		}
	}()
	w.stops = append(w.stops, func() { s.Stop(); <-served })
	return nil
}

// sessions counts those of all instances that answer.
func (w *world) sessions(ctx context.Context) (int, error) {
	f, err := w.brokers.Facts(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, in := range f.Instances {
		if in.Sessions != nil && in.FailingMS == nil {
			n += *in.Sessions
		}
	}
	return n, nil
}
