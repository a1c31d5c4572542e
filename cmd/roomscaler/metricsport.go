package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/roomscaler/roomscaler/broker/brokermetrics"
)

// newRegistry has what every process tells of itself.
func newRegistry() (*prometheus.Registry, error) {
	r := prometheus.NewRegistry()
	return r, errors.Join(
		r.Register(collectors.NewGoCollector()),
		r.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
		brokermetrics.Build(r, version()),
	)
}

func metricsHandler(r *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// serveMetrics serves metrics and health; address "" or "off" serves none. The server
// ends last, so that the end can be watched.
func serveMetrics(ctx context.Context, l *lifecycle, log *slog.Logger, address string, h http.Handler) (stop func(context.Context) error, err error) {
	if address == "" || address == "off" {
		return func(context.Context) error { return nil }, nil
	}
	listener, err := listen(ctx, "metrics-listen", address)
	if err != nil {
		return nil, err
	}
	s := httpServer(h, log)
	l.serve("metrics", listener.Addr().String(), func() error { return s.Serve(listener) })
	return s.Shutdown, nil
}
