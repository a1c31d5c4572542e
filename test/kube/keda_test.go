package kube

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	metricsclient "k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"

	"github.com/roomscaler/roomscaler/scaler"
)

// kedaLabel is by what KEDA's metrics server knows the ScaledObject of a metric.
const kedaLabel = "scaledobject.keda.sh/name"

// keda is the external metrics API as the HPA sees it: KEDA in front of the scaler, without a network between.
type keda struct {
	metricsclient.MetricsClient // nothing but external metrics is asked for
	server                      pb.ExternalScalerServer
	metadata                    func(scaledObject string) map[string]string
	takes                       time.Duration // from the HPA's question to the scaler's answer
	plain                       atomic.Int64  // a number to be answered instead of the scaler's; 0: none
}

func newKEDA(s *scaler.Scaler, metadata func(string) map[string]string) *keda {
	k := &keda{metadata: metadata}
	s.Register(k)
	return k
}

// RegisterService takes what the scaler would give to a gRPC server.
func (k *keda) RegisterService(_ *grpc.ServiceDesc, service any) {
	k.server = service.(pb.ExternalScalerServer)
}

func (k *keda) ref(namespace, name string) *pb.ScaledObjectRef {
	return &pb.ScaledObjectRef{Name: name, Namespace: namespace, ScalerMetadata: k.metadata(name)}
}

// GetExternalMetric makes the calls of one evaluation, in KEDA's order. An error of any discards the value.
func (k *keda) GetExternalMetric(metric, namespace string, selector labels.Selector) ([]int64, time.Time, error) {
	time.Sleep(k.takes)
	if n := k.plain.Load(); n > 0 {
		return []int64{1000 * n}, time.Now(), nil
	}
	name, _ := selector.RequiresExactMatch(kedaLabel)
	ctx, ref := context.Background(), k.ref(namespace, name)
	spec, err := k.server.GetMetricSpec(ctx, ref)
	if err != nil {
		return nil, time.Time{}, err
	}
	if len(spec.GetMetricSpecs()) != 1 || spec.GetMetricSpecs()[0].GetTargetSizeFloat() != 1 {
		return nil, time.Time{}, fmt.Errorf("the spec is %v, the HPA was made for one metric with target 1", spec)
	}
	answer, err := k.server.GetMetrics(ctx, &pb.GetMetricsRequest{ScaledObjectRef: ref, MetricName: strings.TrimPrefix(metric, "s0-")})
	if err != nil {
		return nil, time.Time{}, err
	}
	if _, err := k.server.IsActive(ctx, ref); err != nil {
		return nil, time.Time{}, err
	}
	var values []int64
	for _, v := range answer.GetMetricValues() {
		n := v.GetMetricValueFloat()
		if !(n > 0) {
			n = float64(v.GetMetricValue()) //nolint:staticcheck // as KEDA does
		}
		q, err := resource.ParseQuantity(fmt.Sprintf("%.3f", n))
		if err != nil {
			return nil, time.Time{}, err
		}
		values = append(values, q.MilliValue())
	}
	if len(values) == 0 {
		return nil, time.Time{}, errors.New("no metrics returned")
	}
	return values, time.Now(), nil
}
