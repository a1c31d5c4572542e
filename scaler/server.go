package scaler

import (
	"context"
	"math"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"
)

// firstWait is how long GetMetrics waits for the very first decision of a planner that
// the same synchronisation of KEDA's has started.
const firstWait = time.Second

// Register makes the scaler answer KEDA's calls at a server.
func (s *Scaler) Register(r grpc.ServiceRegistrar) {
	pb.RegisterExternalScalerServer(r, &server{scaler: s})
}

// server answers KEDA. StreamMetricSpec stays unimplemented, which KEDA takes as "the target never changes".
type server struct {
	pb.UnimplementedExternalScalerServer
	scaler *Scaler
}

// find returns the planner that a call is for.
func (s *server) find(ref *pb.ScaledObjectRef) (*planner, Target, error) {
	t, err := ParseTarget(ref.GetScalerMetadata())
	if err != nil {
		return nil, Target{}, err
	}
	if ref.GetName() == "" || ref.GetNamespace() == "" {
		return nil, Target{}, &TargetError{"scaledObjectRef", "has no name or no namespace; call as KEDA does"}
	}
	p, err := s.scaler.called(Ref{Namespace: ref.GetNamespace(), Name: ref.GetName()}, t)
	return p, t, err
}

func metricName(t Target) string { return "roomscaler-" + t.Pool }

// GetMetricSpec answers from the metadata alone: it must succeed when nothing is known,
// so that the error that then holds the number comes from GetMetrics.
func (s *server) GetMetricSpec(_ context.Context, ref *pb.ScaledObjectRef) (*pb.GetMetricSpecResponse, error) {
	_, t, err := s.find(ref)
	if err != nil {
		return nil, statusOf(err)
	}
	return &pb.GetMetricSpecResponse{MetricSpecs: []*pb.MetricSpec{{
		MetricName:      metricName(t),
		TargetSize:      1, //nolint:staticcheck // older KEDA reads only this field
		TargetSizeFloat: 1,
	}}}, nil
}

// GetMetrics answers with the stored number of replicas.
func (s *server) GetMetrics(ctx context.Context, r *pb.GetMetricsRequest) (*pb.GetMetricsResponse, error) {
	p, t, err := s.find(r.GetScaledObjectRef())
	var n float64
	if err == nil {
		waitFirst(ctx, p)
		n, err = p.answer()
	}
	s.scaler.metrics.answered(err)
	if err != nil {
		return nil, statusOf(err)
	}
	return &pb.GetMetricsResponse{MetricValues: []*pb.MetricValue{{
		MetricName:       metricName(t),
		MetricValue:      int64(math.Ceil(n)), //nolint:staticcheck // KEDA reads it when the float is 0, and older KEDA always
		MetricValueFloat: n,
	}}}, nil
}

// waitFirst returns at once for a planner that has looked before.
func waitFirst(ctx context.Context, p *planner) {
	select {
	case <-p.first:
		return
	default:
	}
	limit := time.NewTimer(firstWait)
	defer limit.Stop()
	select {
	case <-p.first:
	case <-limit.C:
	case <-ctx.Done():
	}
}

// IsActive is false only when the stored number is 0 and everything has been released. It
// never fails for want of knowledge: an error here would make KEDA discard a good number.
func (s *server) IsActive(_ context.Context, ref *pb.ScaledObjectRef) (*pb.IsActiveResponse, error) {
	p, _, err := s.find(ref)
	if err != nil {
		return nil, statusOf(err)
	}
	active, _, _ := p.active()
	return &pb.IsActiveResponse{Result: active}, nil
}

// wakeEvery is how often "active" is repeated while nothing runs: the autoscaler does nothing at 0 replicas, and KEDA's
// own write of 0 may come after the first time.
const wakeEvery = 5 * time.Second

// StreamIsActive says "active" when the stream opens, whenever the pool becomes active, and again while nothing runs
// although it is. It ends without an error, because KEDA waits longer after each error before it calls again.
func (s *server) StreamIsActive(ref *pb.ScaledObjectRef, stream grpc.ServerStreamingServer[pb.IsActiveResponse]) error {
	p, _, err := s.find(ref)
	if err != nil {
		return statusOf(err)
	}
	again := time.NewTicker(wakeEvery)
	defer again.Stop()
	told, due := false, false
	for {
		active, asleep, changed := p.active()
		if active && (!told || asleep && due) {
			if err := stream.Send(&pb.IsActiveResponse{Result: true}); err != nil {
				return nil //nolint:nilerr // the caller is gone, nobody reads the status
			}
		}
		told, due = active, false
		select {
		case <-changed:
		case <-again.C:
			due = true
		case <-p.ended:
			return nil
		case <-s.scaler.stopping:
			return nil
		case <-stream.Context().Done():
			return nil
		}
	}
}
