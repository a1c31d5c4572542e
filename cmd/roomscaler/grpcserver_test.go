package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

type noBroker struct{}

func (noBroker) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("connection refused")
}

// servedScaler is a scaler process's gRPC server in a synctest bubble, without a broker.
type servedScaler struct {
	process     *scalerProcess
	listener    *bufconn.Listener
	connections atomic.Int32
	stop        func() error
}

func serveScaler(t *testing.T) *servedScaler {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	client, err := brokerapi.NewClient("http://broker", nil, &http.Client{Transport: noBroker{}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := newScaler(client, log, prometheus.NewRegistry(), &tlsFiles{}, 5*time.Minute, false)
	if err != nil {
		t.Fatal(err)
	}
	s := &servedScaler{process: p, listener: bufconn.Listen(1 << 16)}
	l := newLifecycle(log)
	p.start(l, s.listener)
	s.stop = func() error {
		p.unready()
		return l.end(context.Background())
	}
	t.Cleanup(func() { _ = s.stop() })
	return s
}

func (s *servedScaler) dial(t *testing.T) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:scaler", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			s.connections.Add(1)
			return s.listener.DialContext(ctx)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func scaledObject() *pb.ScaledObjectRef {
	return &pb.ScaledObjectRef{Name: "janus", Namespace: "media", ScalerMetadata: map[string]string{"pool": "janus", "targetSessionsPerInstance": "50"}}
}

func TestGRPCServer_Streams(t *testing.T) {
	t.Run("end without an error before their connection does, whenever they begin", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := serveScaler(t)
			keda := pb.NewExternalScalerClient(s.dial(t))
			ends := make(chan error, 1000)
			streams := 0
			for range 90 {
				time.Sleep(41 * time.Second)
				stream, err := keda.StreamIsActive(t.Context(), scaledObject())
				if err != nil {
					t.Fatal(err)
				}
				streams++
				go func() {
					if m, err := stream.Recv(); err != nil || !m.Result {
						ends <- errors.Join(errors.New("no first message"), err)
						return
					}
					began := time.Now()
					_, err := stream.Recv()
					if d := time.Since(began); d > 4*time.Minute+30*time.Second || d < 4*time.Minute {
						err = errors.Join(errors.New("it lived "+d.String()), err)
					}
					ends <- err
				}()
			}
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			if len(ends) != streams {
				t.Fatalf("%d of %d streams have ended", len(ends), streams)
			}
			for range streams {
				if err := <-ends; !errors.Is(err, io.EOF) || err.Error() != "EOF" {
					t.Fatalf("a stream ended with %v", err)
				}
			}
			if n := s.connections.Load(); n < 10 || n > 16 {
				t.Errorf("%d connections in 66 min, want one in about 5 min", n)
			}
		})
	})
	t.Run("end without an error when the process stops", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := serveScaler(t)
			stream, err := pb.NewExternalScalerClient(s.dial(t)).StreamIsActive(t.Context(), scaledObject())
			if err == nil {
				_, err = stream.Recv()
			}
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if err := s.stop(); err != nil || time.Since(began) > time.Second {
				t.Errorf("stopping took %s, %v", time.Since(began), err)
			}
			if _, err := stream.Recv(); err != io.EOF {
				t.Errorf("the stream ended with %v, want EOF", err)
			}
		})
	})
}

func TestGRPCServer_Keepalive(t *testing.T) {
	t.Run("a peer that is silent is given up after 15 s", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := serveScaler(t)
			conn, err := s.listener.DialContext(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
				t.Fatal(err)
			}
			if err := http2.NewFramer(conn, nil).WriteSettings(); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, io.ErrClosedPipe) {
				t.Fatal(err)
			}
			if d := time.Since(began); d != keepaliveTime+keepaliveTimeout {
				t.Errorf("it was given up after %s", d)
			}
		})
	})
	t.Run("one that answers keeps its connection", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := serveScaler(t)
			health := healthpb.NewHealthClient(s.dial(t))
			for range 4 {
				if _, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
			}
			if n := s.connections.Load(); n != 1 {
				t.Errorf("%d connections", n)
			}
		})
	})
}

func TestGRPCServer_Health(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveScaler(t)
		conn := s.dial(t)
		health := healthpb.NewHealthClient(conn)
		check := func(service string, want healthpb.HealthCheckResponse_ServingStatus) {
			t.Helper()
			r, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
			if err != nil || r.Status != want {
				t.Errorf("%q: got %v, %v, want %s", service, r, err, want)
			}
		}
		check("", healthpb.HealthCheckResponse_SERVING)
		check("externalscaler.ExternalScaler", healthpb.HealthCheckResponse_SERVING)
		if _, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: "other"}); status.Code(err) != codes.NotFound {
			t.Errorf("a service that is not there: got %v", err)
		}
		s.process.unready()
		check("", healthpb.HealthCheckResponse_NOT_SERVING)
		check("externalscaler.ExternalScaler", healthpb.HealthCheckResponse_NOT_SERVING)
	})
}

func TestGRPCServer_Reflection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream, err := reflectionpb.NewServerReflectionClient(serveScaler(t).dial(t)).ServerReflectionInfo(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}); err != nil {
			t.Fatal(err)
		}
		r, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, s := range r.GetListServicesResponse().GetService() {
			names[s.Name] = true
		}
		if !names["externalscaler.ExternalScaler"] || !names["grpc.health.v1.Health"] {
			t.Errorf("got %v", names)
		}
	})
}
