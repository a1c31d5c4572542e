package demo

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/roomscaler/roomscaler/test/lab/hpa"
	"github.com/roomscaler/roomscaler/test/lab/keda"
	"github.com/roomscaler/roomscaler/test/lab/supervisor"
)

// autoscale is the loop of KEDA and the HPA: at each sync it asks the scaler at addr and writes spec.replicas. It returns
// when ctx ends.
func autoscale(ctx context.Context, addr string, metadata map[string]string, c hpa.Config, set *supervisor.Supervisor, log *slog.Logger) error {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connecting to the scaler: %w", err)
	}
	defer conn.Close()
	trigger := keda.Trigger{Client: externalscaler.NewExternalScalerClient(conn), Name: "janus", Namespace: pool, Metadata: metadata}
	spec, _ := set.Replicas()
	h := hpa.New(c, time.Now(), spec)
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		call, cancel := context.WithTimeout(ctx, askTimeout)
		answer, err := trigger.Ask(call)
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		spec, status := set.Replicas()
		next, why := h.Sync(time.Now(), spec, status, answer.Metrics, err)
		attrs := []any{"spec", spec, "status", status, "next", next, "reason", string(why)}
		if err != nil {
			attrs = append(attrs, "error", err)
		} else if len(answer.Metrics) > 0 {
			attrs = append(attrs, "value", float64(answer.Metrics[0].Value)/1000)
		}
		log.Info("sync", attrs...)
		set.Scale(next)
	}
}
