package kube

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	scaleclient "k8s.io/client-go/scale"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	metricsclient "k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	"k8s.io/kubernetes/pkg/features"

	"github.com/roomscaler/roomscaler/scaler"
)

// The controllers log what is as it should be here. Their handling of errors would also sleep until the time at which
// the process began, which to a bubble is far in the future.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	if os.Getenv("KUBE_LOG") == "" {
		klog.SetLogger(logr.Discard())
	}
	os.Exit(m.Run())
}

const (
	namespace = "media"
	// syncPeriod is the HPA's, and that of a cluster which says nothing else.
	syncPeriod = 15 * time.Second
	// clusterTolerance and clusterWindow are the controller manager's defaults.
	clusterTolerance = 0.1
	clusterWindow    = 5 * time.Minute
	// resync is an informer's. Without one, client-go 0.34 waits on a channel from outside of the bubble.
	resync = 12 * time.Hour
)

// tolerance is by how much a value may differ before the HPA follows it.
type tolerance struct {
	field *float64 // of the HPA, both ways; nil: not set, or dropped by an API server without the gate
	flag  float64  // of the controller manager
}

func exact() tolerance { zero := 0.0; return tolerance{field: &zero, flag: clusterTolerance} }

func band() tolerance { return tolerance{flag: clusterTolerance} }

// gate turns the HPA's own tolerance on where it is off: it is alpha in 1.34.
func gate(t *testing.T) {
	t.Helper()
	if !utilfeature.DefaultFeatureGate.Enabled(features.HPAConfigurableTolerance) {
		featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.HPAConfigurableTolerance, true)
	}
}

// ungated skips where the gate cannot be off any more.
func ungated(t *testing.T) {
	t.Helper()
	if utilfeature.DefaultFeatureGate.Enabled(features.HPAConfigurableTolerance) {
		t.Skip("HPAConfigurableTolerance is on by default in this version")
	}
}

// rules of one direction: whatever is asked for, within a period.
func unlimited(tol tolerance) *autoscalingv2.HPAScalingRules {
	none := int32(0)
	most := autoscalingv2.MaxChangePolicySelect
	r := &autoscalingv2.HPAScalingRules{
		StabilizationWindowSeconds: &none, SelectPolicy: &most,
		Policies: []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 1000, PeriodSeconds: 15}},
	}
	if tol.field != nil {
		q := resource.MustParse(fmt.Sprintf("%g", *tol.field))
		r.Tolerance = &q
	}
	return r
}

// newHPA is the HPA that KEDA makes of a ScaledObject.
func newHPA(scaledObject, statefulSet, metric string, minimum, maximum int32, up, down *autoscalingv2.HPAScalingRules) *autoscalingv2.HorizontalPodAutoscaler {
	one := resource.MustParse("1")
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: scaledObject, Namespace: namespace, UID: "hpa", Generation: 1},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: statefulSet},
			MinReplicas:    &minimum, MaxReplicas: maximum,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
				Metric: autoscalingv2.MetricIdentifier{Name: metric, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{kedaLabel: scaledObject}}},
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &one},
			}}},
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: up, ScaleDown: down},
		},
	}
}

// autoscalerOf is what the scaler reads of an HPA.
func autoscalerOf(h *autoscalingv2.HorizontalPodAutoscaler) *scaler.Autoscaler {
	side := func(r *autoscalingv2.HPAScalingRules) float64 {
		if r == nil || r.Tolerance == nil {
			return clusterTolerance
		}
		return r.Tolerance.AsApproximateFloat64()
	}
	a := &scaler.Autoscaler{
		Name: h.Name, Minimum: int(*h.Spec.MinReplicas), Maximum: int(h.Spec.MaxReplicas), Current: int(h.Status.CurrentReplicas), Desired: int(h.Status.DesiredReplicas),
		ScaleUp: side(h.Spec.Behavior.ScaleUp), ScaleIn: side(h.Spec.Behavior.ScaleDown), WindowMS: -1,
	}
	if w := h.Spec.Behavior.ScaleDown.StabilizationWindowSeconds; w != nil {
		a.WindowMS = int64(*w) * 1000
	}
	return a
}

// runHPAs runs the HPA controller over the API server's HPAs until the context ends.
func runHPAs(ctx context.Context, api *fake.Clientset, f informers.SharedInformerFactory, s scaleclient.ScalesGetter, m metricsclient.MetricsClient, flag float64) (stopped <-chan struct{}) {
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{apps})
	mapper.Add(apps.WithKind("StatefulSet"), meta.RESTScopeNamespace)
	c := podautoscaler.NewHorizontalController(ctx, api.CoreV1(), s, api.AutoscalingV2(), mapper, m,
		f.Autoscaling().V2().HorizontalPodAutoscalers(), f.Core().V1().Pods(), syncPeriod, clusterWindow, flag, 5*time.Minute, 30*time.Second)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx, 5)
	}()
	return done
}

// scales is the subresource scale of all StatefulSets.
type scales struct {
	scaleclient.ScaleInterface // without Patch
	read                       func(name string) (*autoscalingv1.Scale, error)
	write                      func(name string, replicas int32) error
}

// Scales returns the scales of a namespace: there is one.
func (s scales) Scales(string) scaleclient.ScaleInterface { return s }

// Get reads one.
func (s scales) Get(_ context.Context, _ schema.GroupResource, name string, _ metav1.GetOptions) (*autoscalingv1.Scale, error) {
	return s.read(name)
}

// Update writes spec.replicas.
func (s scales) Update(_ context.Context, _ schema.GroupResource, o *autoscalingv1.Scale, _ metav1.UpdateOptions) (*autoscalingv1.Scale, error) {
	if err := s.write(o.Name, o.Spec.Replicas); err != nil {
		return nil, err
	}
	return s.read(o.Name)
}

func scaleOf(name string, spec, status int32) *autoscalingv1.Scale {
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       autoscalingv1.ScaleSpec{Replicas: spec},
		Status:     autoscalingv1.ScaleStatus{Replicas: status, Selector: "statefulset=" + name},
	}
}
