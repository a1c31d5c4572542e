package adapter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/metrics/pkg/apis/external_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/scaler"
)

// The names of the metrics, and the label that says whose they are.
const (
	MetricDesired  = "roomscaler_desired_instances" // the stored number of instances
	MetricSessions = "roomscaler_sessions"          // sessions on all instances, as they report them
	MetricRooms    = "roomscaler_rooms"             // rooms in the directory
	LabelPool      = "pool"
)

// Owner is the name by which the adapter has a pool, beside the namespace of the pool's
// autoscaler. All replicas of an adapter are one owner.
const Owner = "roomscaler-adapter"

// factsTimeout bounds the fetch of a pool's facts for a metric that is read off them.
const factsTimeout = 3 * time.Second

// Source is what is asked for the metrics that are no decision.
type Source interface {
	Facts(ctx context.Context, pool string) (brokerapi.PoolFacts, error)
}

// Provider answers the external metrics API for some pools.
type Provider struct {
	pools  map[string]Pool // by name
	source Source
	keda   pb.ExternalScalerServer
}

var _ provider.ExternalMetricsProvider = (*Provider)(nil)

// NewProvider returns a Provider of the pools that asks s for their numbers. s must run.
func NewProvider(pools []Pool, source Source, s *scaler.Scaler) *Provider {
	p := &Provider{pools: map[string]Pool{}, source: source}
	for _, pool := range pools {
		p.pools[pool.Target.Pool] = pool
	}
	s.Register(taker{p})
	return p
}

// taker is where a scaler registers what answers KEDA.
type taker struct{ p *Provider }

// RegisterService implements grpc.ServiceRegistrar.
func (t taker) RegisterService(_ *grpc.ServiceDesc, service any) {
	t.p.keda = service.(pb.ExternalScalerServer)
}

// ListAllExternalMetrics implements provider.ExternalMetricsProvider.
func (p *Provider) ListAllExternalMetrics() []provider.ExternalMetricInfo {
	return []provider.ExternalMetricInfo{{Metric: MetricDesired}, {Metric: MetricSessions}, {Metric: MetricRooms}}
}

// GetExternalMetric implements provider.ExternalMetricsProvider: it returns one value, that of the one pool that
// the selector names, or an error. Asking for the number of instances is what keeps the pool planned,
// as KEDA's calls do.
func (p *Provider) GetExternalMetric(ctx context.Context, namespace string, selector labels.Selector, info provider.ExternalMetricInfo) (*external_metrics.ExternalMetricValueList, error) {
	ask := map[string]func(context.Context, Pool) (float64, error){
		MetricDesired: p.desired, MetricSessions: p.sessions, MetricRooms: p.rooms,
	}[info.Metric]
	if ask == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: external_metrics.GroupName, Resource: "metrics"}, info.Metric)
	}
	name, err := selected(selector)
	if err != nil {
		return nil, err
	}
	pool, ok := p.pools[name]
	if !ok || pool.Namespace != namespace {
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: external_metrics.GroupName, Resource: "pools"}, name)
	}
	n, err := ask(ctx, pool)
	if err != nil {
		return nil, err
	}
	return &external_metrics.ExternalMetricValueList{Items: []external_metrics.ExternalMetricValue{{
		MetricName:   info.Metric,
		MetricLabels: map[string]string{LabelPool: name},
		Timestamp:    metav1.Now(),
		Value:        *resource.NewMilliQuantity(int64(math.Ceil(n*1000)), resource.DecimalSI),
	}}}, nil
}

// selected returns the pool of a selector. It must name exactly one: an autoscaler adds up
// what it is given, and the sum of two pools is the size of neither.
func selected(s labels.Selector) (string, error) {
	requirements, selectable := s.Requirements()
	if selectable && len(requirements) == 1 {
		r := requirements[0]
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			if values := r.Values().UnsortedList(); r.Key() == LabelPool && len(values) == 1 {
				return values[0], nil
			}
		}
	}
	return "", apierrors.NewBadRequest(fmt.Sprintf("selector %q: name one pool and nothing else, as %s=video", s, LabelPool))
}

// desired returns the stored number of instances.
func (p *Provider) desired(ctx context.Context, pool Pool) (float64, error) {
	answer, err := p.keda.GetMetrics(ctx, &pb.GetMetricsRequest{
		ScaledObjectRef: &pb.ScaledObjectRef{Namespace: pool.Namespace, Name: Owner, ScalerMetadata: pool.Target.Metadata()},
		MetricName:      MetricDesired,
	})
	if err != nil {
		return 0, refusal(err)
	}
	values := answer.GetMetricValues()
	if len(values) != 1 {
		return 0, apierrors.NewInternalError(fmt.Errorf("the scaler gave %d values instead of one", len(values)))
	}
	return values[0].GetMetricValueFloat(), nil
}

// refusal says a status of the scaler's as one of the Kubernetes API.
func refusal(err error) error {
	s := status.Convert(err)
	switch s.Code() {
	case codes.InvalidArgument:
		return apierrors.NewBadRequest(s.Message())
	case codes.FailedPrecondition:
		return apierrors.NewConflict(schema.GroupResource{Group: external_metrics.GroupName, Resource: "metrics"}, MetricDesired, errors.New(s.Message()))
	}
	return apierrors.NewServiceUnavailable(s.Message())
}

// facts returns what the broker knows, unless it is about to learn it anew.
func (p *Provider) facts(ctx context.Context, pool string) (brokerapi.PoolFacts, error) {
	ctx, cancel := context.WithTimeout(ctx, factsTimeout)
	defer cancel()
	f, err := p.source.Facts(ctx, pool)
	if err != nil {
		return f, apierrors.NewServiceUnavailable(fmt.Sprintf("fetch the facts of pool %s: %v", pool, err))
	}
	if f.Phase != brokerapi.PhaseReady {
		return f, apierrors.NewServiceUnavailable(fmt.Sprintf("pool %s: the directory is being rebuilt", pool))
	}
	return f, nil
}

// The states of instances whose sessions are no longer of interest: they have been given up.
const (
	stateReleased = "released"
	stateLost     = "lost"
)

// sessions returns the sum over all instances, if all of them are known.
func (p *Provider) sessions(ctx context.Context, pool Pool) (float64, error) {
	f, err := p.facts(ctx, pool.Target.Pool)
	if err != nil {
		return 0, err
	}
	sum := 0
	for i := range f.Instances {
		in := &f.Instances[i]
		if in.State == stateReleased || in.State == stateLost {
			continue
		}
		if in.Sessions == nil || in.AgeMS == nil || *in.AgeMS > pool.Target.StaleAfter.Milliseconds() {
			return 0, apierrors.NewServiceUnavailable(fmt.Sprintf("pool %s: instance %s has not answered within %s (%s)",
				pool.Target.Pool, in.Name, pool.Target.StaleAfter, in.State))
		}
		sum += *in.Sessions
	}
	return float64(sum), nil
}

// rooms returns how many rooms the directory has.
func (p *Provider) rooms(ctx context.Context, pool Pool) (float64, error) {
	f, err := p.facts(ctx, pool.Target.Pool)
	if err != nil {
		return 0, err
	}
	sum := 0
	for i := range f.Instances {
		sum += f.Instances[i].RoomsLeft
	}
	return float64(sum), nil
}
