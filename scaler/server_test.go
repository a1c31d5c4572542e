package scaler_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/scaler"
)

// ready is a new pool with so many busy instances.
func ready(instances ...brokerapi.Instance) brokerapi.PoolFacts {
	return brokerapi.PoolFacts{Term: "t1", Phase: brokerapi.PhaseReady, EmptyWhen: "sessions", Instances: instances}
}

func TestServer_GetMetricSpec(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(ready())
		b.before = func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
		r := start(t, b)
		before := time.Now()
		got, err := r.keda.GetMetricSpec(t.Context(), ref())
		if err != nil || len(got.MetricSpecs) != 1 {
			t.Fatalf("got %v, %v", got, err)
		}
		m := got.MetricSpecs[0]
		if m.MetricName != "roomscaler-janus" || m.TargetSize != 1 || m.TargetSizeFloat != 1 { //nolint:staticcheck // both fields count
			t.Errorf("got %v, want target 1 in both fields", m)
		}
		if d := time.Since(before); d != 0 {
			t.Errorf("it waited for %s; it must answer from the metadata alone", d)
		}
	})
}

func TestServer_FirstAnswer(t *testing.T) {
	t.Run("comes with the first decision", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newFakeBroker(ready(row(3, 40)...))
			b.before = func(context.Context, string) error { time.Sleep(200 * time.Millisecond); return nil }
			r := start(t, b)
			r.wants(3)
		})
	})
	t.Run("is UNAVAILABLE after a second without one", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newFakeBroker(ready(row(3, 40)...))
			b.before = func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
			r := start(t, b)
			before := time.Now()
			_, code, text := r.answer(ref())
			if code != codes.Unavailable || !strings.Contains(text, "no decision for pool janus yet") || time.Since(before) != time.Second {
				t.Errorf("got %s %q after %s", code, text, time.Since(before))
			}
		})
	})
}

func TestServer_BadMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newFakeBroker(ready(row(3, 40)...)))
		bad := ref("cooldownWindow", "soon")
		_, err1 := r.keda.GetMetricSpec(t.Context(), bad)
		_, err2 := r.keda.GetMetrics(t.Context(), &pb.GetMetricsRequest{ScaledObjectRef: bad})
		_, err3 := r.keda.IsActive(t.Context(), bad)
		err4 := r.keda.StreamIsActive(bad, &stream{ctx: t.Context()})
		_, err5 := r.keda.GetMetrics(t.Context(), &pb.GetMetricsRequest{})
		for i, err := range []error{err1, err2, err3, err4} {
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "cooldownWindow") {
				t.Errorf("call %d: got %v, want INVALID_ARGUMENT naming the key", i+1, err)
			}
		}
		if status.Code(err5) != codes.InvalidArgument {
			t.Errorf("an empty request: got %v", err5)
		}
	})
}

func TestServer_IsActive(t *testing.T) {
	isActive := func(t *testing.T, r *replica, o *pb.ScaledObjectRef) bool {
		t.Helper()
		got, err := r.keda.IsActive(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return got.Result
	}
	zero := ref("minInstances", "0")
	t.Run("is true while nothing is known", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newFakeBroker(ready())
			b.before = func(context.Context, string) error { return errGone }
			r := start(t, b)
			settle(time.Minute)
			if !isActive(t, r, zero) {
				t.Error("got false")
			}
		})
	})
	t.Run("is false when the stored number is 0 and all is released, and not for longer than that is known", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newFakeBroker(ready())
			r := start(t, b)
			if n, code, text := r.answer(zero); n != 0 {
				t.Fatalf("got %d, %s %q, want 0", n, code, text)
			}
			if isActive(t, r, zero) {
				t.Error("got true at 0")
			}
			b.set(func(b *fakeBroker) { b.before = func(context.Context, string) error { return errGone } })
			settle(scaler.ServeTTL)
			if !isActive(t, r, zero) {
				t.Error("got false when it was no longer known")
			}
		})
	})
	t.Run("is true at 0 while an instance stands that is not released", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newFakeBroker(ready())
			r := start(t, b)
			r.answer(zero)
			b.set(func(b *fakeBroker) {
				b.facts.Instances = row(1, 0)
				b.before = func(_ context.Context, call string) error {
					if call == "put" {
						return errGone
					}
					return nil
				}
			})
			settle(2 * time.Second)
			if !isActive(t, r, zero) {
				t.Error("got false")
			}
		})
	})
}

func TestServer_StreamIsActive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(ready())
		r := start(t, b)
		zero := ref("minInstances", "0")
		r.answer(zero) // the pool is at 0
		s := &stream{ctx: t.Context(), sent: make(chan bool, 10)}
		ended := make(chan error, 1)
		go func() { ended <- r.keda.StreamIsActive(zero, s) }()
		settle(5 * time.Second)
		if len(s.sent) != 0 {
			t.Fatalf("%d messages at 0, want none", len(s.sent))
		}
		b.set(func(b *fakeBroker) { b.facts.Queue.Participants = 10 })
		settle(2 * time.Second)
		if len(s.sent) != 1 || !<-s.sent {
			t.Fatalf("want one true when the pool becomes active")
		}
		settle(time.Minute)
		if len(s.sent) != 0 {
			t.Errorf("%d messages without a change", len(s.sent))
		}
		r.stop()
		if err := <-ended; err != nil {
			t.Errorf("the stream ended with %v at shutdown, want no error", err)
		}
	})
}

// TestServer_OnTheWire speaks gRPC, as KEDA does.
func TestServer_OnTheWire(t *testing.T) {
	b := newFakeBroker(ready(row(3, 40)...))
	s, err := scaler.New(scaler.Options{Source: b, Logger: discard()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan struct{})
	go func() { defer close(ran); s.Run(ctx) }()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	s.Register(server)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	keda := pb.NewExternalScalerClient(conn)

	got, err := keda.GetMetrics(ctx, &pb.GetMetricsRequest{ScaledObjectRef: ref(), MetricName: "roomscaler-janus"})
	if err != nil || got.MetricValues[0].MetricValueFloat != 3 {
		t.Errorf("got %v, %v, want 3", got, err)
	}
	specs, err := keda.StreamMetricSpec(ctx, ref())
	if err == nil {
		_, err = specs.Recv()
	}
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("StreamMetricSpec: got %v, want UNIMPLEMENTED", err)
	}
	push, err := keda.StreamIsActive(t.Context(), ref())
	if err != nil {
		t.Fatal(err)
	}
	if m, err := push.Recv(); err != nil || !m.Result {
		t.Errorf("got %v, %v, want true at once", m, err)
	}
	cancel()
	<-ran
	server.GracefulStop() // returns only because the stream has ended
	if _, err := push.Recv(); err == nil || err.Error() != "EOF" {
		t.Errorf("the stream ended with %v, want EOF", err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
