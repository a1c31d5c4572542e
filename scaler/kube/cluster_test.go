package kube_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/roomscaler/roomscaler/scaler"
	"github.com/roomscaler/roomscaler/scaler/kube"
)

var (
	object        = scaler.Ref{Namespace: "media", Name: "janus"}
	scaledObjects = schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}
	statefulSets  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	pods          = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	autoscalers   = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
	events        = schema.GroupVersionResource{Version: "v1", Resource: "events"}
)

func ptr[T any](v T) *T { return &v }

// cluster is a Kubernetes API in memory and a Watcher on it, in a bubble.
type cluster struct {
	t       *testing.T
	api     *fake.FakeDynamicClient
	watcher *kube.Watcher

	mu      sync.Mutex
	slow    map[string]time.Duration // lists of a resource take so long
	broken  map[string]error         // "verb resource" or "* resource" -> what it answers
	watches map[string][]watch.Interface
	calls   map[string]int
}

func newCluster(t *testing.T, objects ...runtime.Object) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, corev1.AddToScheme, autoscalingv2.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	scheme.AddKnownTypeWithName(scaledObjects.GroupVersion().WithKind("ScaledObject"), &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(scaledObjects.GroupVersion().WithKind("ScaledObjectList"), &unstructured.UnstructuredList{})
	c := &cluster{t: t, api: fake.NewSimpleDynamicClient(scheme, objects...), broken: map[string]error{}, watches: map[string][]watch.Interface{}, calls: map[string]int{}}
	refuse := func(a ktesting.Action) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.calls[a.GetVerb()+" "+a.GetResource().Resource]++
		if err := c.broken[a.GetVerb()+" "+a.GetResource().Resource]; err != nil {
			return err
		}
		return c.broken["* "+a.GetResource().Resource]
	}
	c.api.PrependReactor("*", "*", func(a ktesting.Action) (bool, runtime.Object, error) {
		err := refuse(a)
		return err != nil, nil, err
	})
	c.api.PrependWatchReactor("*", func(a ktesting.Action) (bool, watch.Interface, error) {
		if err := refuse(a); err != nil {
			return true, nil, err
		}
		w, err := c.api.Tracker().Watch(a.GetResource(), a.GetNamespace())
		c.mu.Lock()
		defer c.mu.Unlock()
		c.watches[a.GetResource().Resource] = append(c.watches[a.GetResource().Resource], w)
		return true, w, err
	})
	c.watcher = kube.New(&slowClient{c.api, c}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); c.watcher.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return c
}

// slowClient lets lists take time.
type slowClient struct {
	*fake.FakeDynamicClient
	c *cluster
}

type slowResource struct {
	dynamic.NamespaceableResourceInterface
	c        *cluster
	resource string
}

func (s *slowClient) Resource(r schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return slowResource{s.FakeDynamicClient.Resource(r), s.c, r.Resource}
}

func (s slowResource) Namespace(name string) dynamic.ResourceInterface {
	return slowList{s.NamespaceableResourceInterface.Namespace(name), s}
}

type slowList struct {
	dynamic.ResourceInterface
	of slowResource
}

func (s slowList) List(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	time.Sleep(s.of.c.slow[s.of.resource])
	return s.ResourceInterface.List(ctx, o)
}

// refuse makes calls fail from now on, and cuts the watches that run; nil: they work again.
func (c *cluster) refuse(call, resource string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken[call+" "+resource] = err
	if err != nil {
		for _, w := range c.watches[resource] {
			w.Stop()
		}
		c.watches[resource] = nil
	}
}

func (c *cluster) count(call string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[call]
}

// view lets everything settle and asks.
func (c *cluster) view() (scaler.Workload, error) {
	c.t.Helper()
	if _, err := c.watcher.View(object); err != nil {
		synctest.Wait()
	}
	return c.watcher.View(object)
}

func (c *cluster) mustView() scaler.Workload {
	c.t.Helper()
	w, err := c.view()
	if err != nil {
		c.t.Fatal(err)
	}
	return w
}

// put stores an object anew and lets the change arrive.
func (c *cluster) put(r schema.GroupVersionResource, o runtime.Object) {
	c.t.Helper()
	u := unstructuredOf(c.t, o)
	calls := c.api.Resource(r).Namespace("media")
	_, err := calls.Update(c.t.Context(), u, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = calls.Create(c.t.Context(), u, metav1.CreateOptions{})
	}
	if err != nil {
		c.t.Fatal(err)
	}
	synctest.Wait()
}

func (c *cluster) remove(r schema.GroupVersionResource, name string) {
	c.t.Helper()
	if err := c.api.Resource(r).Namespace("media").Delete(c.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
	synctest.Wait()
}

func unstructuredOf(t *testing.T, o runtime.Object) *unstructured.Unstructured {
	t.Helper()
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u
	}
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: m}
}

// scaledObject is KEDA's, as it ought to be, changed by edit.
func scaledObject(edit func(spec map[string]any)) *unstructured.Unstructured {
	spec := map[string]any{
		"scaleTargetRef":  map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "janus"},
		"minReplicaCount": int64(2), "maxReplicaCount": int64(60),
		"triggers": []any{map[string]any{"type": "external", "metricType": "AverageValue", "metadata": map[string]any{"pool": "janus"}}},
	}
	if edit != nil {
		edit(spec)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
		"metadata": map[string]any{"name": "janus", "namespace": "media", "uid": "uid-of-object"}, "spec": spec,
	}}
}

func statefulSet(replicas int32, edit func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	s := &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: metav1.ObjectMeta{Name: "janus", Namespace: "media", UID: "uid-of-set"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "janus"}},
			PodManagementPolicy: appsv1.ParallelPodManagement, UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
		},
		Status: appsv1.StatefulSetStatus{Replicas: replicas},
	}
	if edit != nil {
		edit(s)
	}
	return s
}

func pod(i int, edit func(*corev1.Pod)) *corev1.Pod {
	name := fmt.Sprintf("janus-%d", i)
	p := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "media", UID: types.UID("uid-of-" + name), Labels: map[string]string{"app": "janus"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "janus", UID: "uid-of-set", Controller: ptr(true)}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "janus", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		},
	}
	if edit != nil {
		edit(p)
	}
	return p
}

func pending(p *corev1.Pod) {
	p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
	}}
}

func terminating(p *corev1.Pod) {
	p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	p.Finalizers = []string{"kept/there"}
}

func autoscaler(edit func(*autoscalingv2.HorizontalPodAutoscaler)) *autoscalingv2.HorizontalPodAutoscaler {
	zero := resource.MustParse("0")
	h := &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler"},
		ObjectMeta: metav1.ObjectMeta{Name: "keda-hpa-janus", Namespace: "media"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			MinReplicas: ptr(int32(2)), MaxReplicas: 60,
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{
				ScaleUp:   &autoscalingv2.HPAScalingRules{Tolerance: &zero},
				ScaleDown: &autoscalingv2.HPAScalingRules{Tolerance: &zero, StabilizationWindowSeconds: ptr(int32(60))},
			},
		},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{CurrentReplicas: 3, DesiredReplicas: 3},
	}
	if edit != nil {
		edit(h)
	}
	return h
}

// all is a pool of three as it ought to be.
func all() []runtime.Object {
	return []runtime.Object{scaledObject(nil), statefulSet(3, nil), pod(0, nil), pod(1, nil), pod(2, nil), autoscaler(nil)}
}

func forbidden(resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", fmt.Errorf("the service account may not"))
}
