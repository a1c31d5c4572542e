// Package naive is the external scaler that anybody would write first: sessions divided by the target, rounded up, and
// nothing held back. It is what the demonstration compares with.
package naive

import (
	"context"
	"math"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Metric is the name of its one metric.
const Metric = "sessions"

// Scaler answers ceil(sessions/target) replicas.
type Scaler struct {
	externalscaler.UnimplementedExternalScalerServer
	// Sessions counts the sessions of the pool.
	Sessions func(ctx context.Context) (int, error)
	Target   int
}

// GetMetricSpec asks for one replica per unit of the metric.
func (s *Scaler) GetMetricSpec(context.Context, *externalscaler.ScaledObjectRef) (*externalscaler.GetMetricSpecResponse, error) {
	return &externalscaler.GetMetricSpecResponse{MetricSpecs: []*externalscaler.MetricSpec{{MetricName: Metric, TargetSize: 1, TargetSizeFloat: 1}}}, nil
}

// GetMetrics answers with the number of replicas wanted.
func (s *Scaler) GetMetrics(ctx context.Context, _ *externalscaler.GetMetricsRequest) (*externalscaler.GetMetricsResponse, error) {
	n, err := s.Sessions(ctx)
	if err != nil {
		return nil, status.Errorf(codes.Unavailable, "counting sessions: %v", err)
	}
	want := math.Ceil(float64(n) / float64(s.Target))
	return &externalscaler.GetMetricsResponse{MetricValues: []*externalscaler.MetricValue{{MetricName: Metric, MetricValue: int64(want), MetricValueFloat: want}}}, nil
}

// IsActive is always true: the pool never goes to zero.
func (s *Scaler) IsActive(context.Context, *externalscaler.ScaledObjectRef) (*externalscaler.IsActiveResponse, error) {
	return &externalscaler.IsActiveResponse{Result: true}, nil
}
