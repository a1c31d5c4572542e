package scaler_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/roomscaler/roomscaler/scaler"
)

// registrar takes what a scaler registers, so that it can be called without a network.
type registrar struct{ keda pb.ExternalScalerServer }

func (r *registrar) RegisterService(_ *grpc.ServiceDesc, impl any) {
	r.keda = impl.(pb.ExternalScalerServer)
}

// replica is one running scaler, and KEDA in front of it.
type replica struct {
	t       *testing.T
	keda    pb.ExternalScalerServer
	metrics *prometheus.Registry
	stop    func()
}

// start runs a scaler until the test, or its bubble, ends.
func start(t *testing.T, source scaler.Source) *replica {
	t.Helper()
	return startOn(t, source, nil)
}

// startOn is start with Kubernetes.
func startOn(t *testing.T, source scaler.Source, cluster scaler.Cluster) *replica {
	t.Helper()
	r := &replica{t: t, metrics: prometheus.NewRegistry()}
	s, err := scaler.New(scaler.Options{Source: source, Cluster: cluster, Logger: discard(), Registerer: r.metrics})
	if err != nil {
		t.Fatal(err)
	}
	var reg registrar
	s.Register(&reg)
	r.keda = reg.keda
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	r.stop = func() { cancel(); <-ended }
	t.Cleanup(r.stop)
	return r
}

func ref(pairs ...string) *pb.ScaledObjectRef {
	m := map[string]string{"scalerAddress": "scaler:6000", "pool": "janus", "targetSessionsPerInstance": "50", "cooldownWindow": "0s", "emptyDwell": "0s"}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return &pb.ScaledObjectRef{Namespace: object.Namespace, Name: object.Name, ScalerMetadata: m}
}

// answer is what GetMetrics says: the number, or the status and its text.
func (r *replica) answer(o *pb.ScaledObjectRef) (int64, codes.Code, string) {
	r.t.Helper()
	got, err := r.keda.GetMetrics(r.t.Context(), &pb.GetMetricsRequest{ScaledObjectRef: o, MetricName: "roomscaler-janus"})
	if err != nil {
		return -1, status.Code(err), status.Convert(err).Message()
	}
	if len(got.MetricValues) != 1 {
		r.t.Fatalf("%d values, want exactly one: the autoscaler adds them up", len(got.MetricValues))
	}
	v := got.MetricValues[0]
	if float64(v.MetricValue) != v.MetricValueFloat { //nolint:staticcheck // both fields count
		r.t.Fatalf("the two fields of the value differ: %v", v)
	}
	return v.MetricValue, codes.OK, "" //nolint:staticcheck // as above
}

// wants fails unless the answer is this number.
func (r *replica) wants(n int64) {
	r.t.Helper()
	if got, code, text := r.answer(ref()); got != n || code != codes.OK {
		r.t.Fatalf("got %d, %s %q; want %d", got, code, text, n)
	}
}

// metric returns a metric's value by its name, and by its mode, code or outcome after a colon.
func (r *replica) metric(key string) float64 {
	r.t.Helper()
	families, err := r.metrics.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			name := f.GetName()
			for _, l := range m.Label {
				if slices.Contains([]string{"outcome", "mode", "code"}, l.GetName()) {
					name += ":" + l.GetValue()
				}
			}
			if name == key {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// settle lets some time pass in the bubble, until everybody waits again.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// stream is KEDA's end of a stream.
type stream struct {
	grpc.ServerStream
	ctx  context.Context //nolint:containedctx // that is what a stream is
	sent chan bool
}

func (s *stream) Context() context.Context { return s.ctx }

func (s *stream) Send(m *pb.IsActiveResponse) error {
	s.sent <- m.Result
	return nil
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
