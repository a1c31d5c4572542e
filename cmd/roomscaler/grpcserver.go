package main

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
)

const (
	// A peer that says nothing is asked after keepaliveTime whether it lives, and given up keepaliveTimeout later. KEDA
	// asks nothing of that kind itself, so a machine that dies would else hold its connection for hours.
	keepaliveTime    = 10 * time.Second
	keepaliveTimeout = 5 * time.Second
	// mayPing is how often a client may ask the same.
	mayPing = 5 * time.Second
	// leastConnectionAge keeps connections from being changed all the time.
	leastConnectionAge = time.Second
)

// grpcServer is a gRPC server with health by service.
type grpcServer struct {
	*grpc.Server
	health *health.Server
}

func connectionAgeFlag(f *pflag.FlagSet, prefix string, age *time.Duration) {
	f.DurationVar(age, prefix+"max-connection-age", 5*time.Minute, "age at which a gRPC connection is replaced, so that KEDA's calls spread over new replicas")
}

// newGRPCServer makes the server of KEDA's calls. KEDA resolves names again only when a connection ends, so each ends at
// about the given age: the server asks the client to open another, and lets calls that run come to their end.
//
// A stream that the end of its connection cuts off would be an error to KEDA, which then waits longer before each next
// try. So streams end before that by themselves and without an error: none lives longer than 9/10 of the age, and a
// connection that is to end waits for its streams for the whole of it.
func newGRPCServer(files *tlsFiles, age time.Duration, log *slog.Logger) (*grpcServer, error) {
	if age < leastConnectionAge {
		return nil, wrong(files.prefix+"max-connection-age", "is below %s; give a duration such as 5m", leastConnectionAge)
	}
	options := []grpc.ServerOption{
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time: keepaliveTime, Timeout: keepaliveTimeout, MaxConnectionAge: age, MaxConnectionAgeGrace: age,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: mayPing, PermitWithoutStream: true}),
		grpc.MaxRecvMsgSize(1 << 20),
		grpc.StreamInterceptor(endStreams(age / 10 * 9)),
	}
	config, err := files.config(log)
	if err != nil {
		return nil, err
	}
	if config != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	return &grpcServer{Server: grpc.NewServer(options...), health: health.NewServer()}, nil
}

// ready is called once all services are registered. It adds reflection and health, which says for each service
// that it serves.
func (s *grpcServer) ready() {
	for name := range s.GetServiceInfo() {
		s.health.SetServingStatus(name, healthpb.HealthCheckResponse_SERVING)
	}
	healthpb.RegisterHealthServer(s.Server, s.health)
	reflection.Register(s.Server)
}

// stop lets running calls come to their end, no longer than ctx.
func (s *grpcServer) stop(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.GracefulStop()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.Stop()
		<-done
		return ctx.Err()
	}
}

// endStreams ends the context of streams after so long. The handlers of the scaler then return without an error. gRPC's
// own services are left alone: they would return one.
func endStreams(after time.Duration) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		if strings.HasPrefix(info.FullMethod, "/grpc.") {
			return handle(srv, stream)
		}
		ctx, cancel := context.WithTimeout(stream.Context(), after)
		defer cancel()
		return handle(srv, endingStream{stream, func() context.Context { return ctx }})
	}
}

type endingStream struct {
	grpc.ServerStream
	context func() context.Context
}

func (s endingStream) Context() context.Context { return s.context() }
