package ha

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/scaler"
)

// dice is a source of chance for several goroutines.
type dice struct {
	mu  sync.Mutex
	rng *rand.Rand
}

func (d *dice) between(low, high time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return low + time.Duration(d.rng.Int64N(int64(high-low)+1))
}

func (d *dice) float() float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.Float64()
}

func (d *dice) exp() float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.ExpFloat64()
}

func (d *dice) below(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.IntN(n)
}

// wire is the network between a scaler and the broker's API: each way takes its time, so that who is killed may be so
// before its call has had its effect, or after it and before the answer.
type wire struct {
	api  http.Handler
	dice *dice
	lost *atomic.Int64 // answers that nobody lived to see
}

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := w.pass(r.Context()); err != nil {
		return nil, err
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	rec := httptest.NewRecorder()
	w.api.ServeHTTP(rec, r.WithContext(context.WithoutCancel(r.Context())))
	if err := w.pass(r.Context()); err != nil {
		w.lost.Add(1)
		return nil, err
	}
	return rec.Result(), nil
}

func (w wire) pass(ctx context.Context) error {
	t := time.NewTimer(w.dice.between(0, 400*time.Millisecond))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// replica is one replica of the scaler. It has one life after another.
type replica struct {
	keda pb.ExternalScalerServer // nil: it is dead
	kill func()
	back time.Time
}

// RegisterService takes the service, so that it can be called without a network.
func (r *replica) RegisterService(_ *grpc.ServiceDesc, impl any) {
	r.keda = impl.(pb.ExternalScalerServer)
}

func (r *replica) start(t *testing.T, w wire) {
	t.Helper()
	client, err := brokerapi.NewClient("http://broker", nil, &http.Client{Transport: w})
	if err != nil {
		t.Fatal(err)
	}
	s, err := scaler.New(scaler.Options{Source: client, Logger: slog.New(slog.DiscardHandler), Interval: 4 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s.Register(r)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); s.Run(ctx) }()
	r.kill = func() {
		r.keda = nil
		cancel()
		<-ended
	}
}

var errDead = errors.New("connection refused")

// keda is KEDA's channel to a headless Service: it goes round the replicas, and finds a dead one now and then before
// it has learnt of its end.
type keda struct {
	replicas []*replica
	next     int
	ref      *pb.ScaledObjectRef
}

func (k *keda) pick() (pb.ExternalScalerServer, error) {
	k.next++
	if r := k.replicas[k.next%len(k.replicas)]; r.keda != nil {
		return r.keda, nil
	}
	return nil, errDead
}

// evaluate is what KEDA does for a synchronisation of the HPA; it tries the second part twice.
func (k *keda) evaluate(ctx context.Context) (int, error) {
	s, err := k.pick()
	if err == nil {
		_, err = s.GetMetricSpec(ctx, k.ref)
	}
	if err != nil {
		return 0, err
	}
	n, err := k.metrics(ctx)
	if err != nil {
		n, err = k.metrics(ctx)
	}
	return n, err
}

func (k *keda) metrics(ctx context.Context) (int, error) {
	s, err := k.pick()
	if err != nil {
		return 0, err
	}
	m, err := s.GetMetrics(ctx, &pb.GetMetricsRequest{ScaledObjectRef: k.ref, MetricName: "roomscaler-janus"})
	if err != nil {
		return 0, err
	}
	if s, err = k.pick(); err == nil {
		_, err = s.IsActive(ctx, k.ref)
	}
	return int(m.MetricValues[0].MetricValueFloat), err
}
