package kubernetes_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/discovery/kubernetes"
)

// cluster is a Kubernetes API in memory, and the finder that watches it. It is made in a synctest bubble.
type cluster struct {
	t      *testing.T
	api    *fake.Clientset
	finder *kubernetes.Finder

	mu      sync.Mutex
	broken  map[string]error // what lists and watches of a resource answer
	watches map[string][]watch.Interface
}

func newCluster(t *testing.T, spec string, objects ...runtime.Object) *cluster {
	t.Helper()
	objects = append(objects, machine("node-0"), machine("node-1"), machine("node-5"))
	c := &cluster{t: t, api: fake.NewClientset(objects...), broken: map[string]error{}, watches: map[string][]watch.Interface{}}
	refuse := func(a ktesting.Action) (bool, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		err := c.broken[a.GetResource().Resource]
		return err != nil, err
	}
	c.api.PrependReactor("list", "*", func(a ktesting.Action) (bool, runtime.Object, error) {
		stop, err := refuse(a)
		return stop, nil, err
	})
	c.api.PrependWatchReactor("*", func(a ktesting.Action) (bool, watch.Interface, error) {
		if stop, err := refuse(a); stop {
			return true, nil, err
		}
		w, err := c.api.Tracker().Watch(a.GetResource(), a.GetNamespace())
		c.mu.Lock()
		defer c.mu.Unlock()
		c.watches[a.GetResource().Resource] = append(c.watches[a.GetResource().Resource], w)
		return true, w, err
	})
	place, err := kubernetes.Parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	c.finder = kubernetes.New(place, c.api)
	return c
}

// run lets the finder watch until the bubble ends.
func (c *cluster) run() {
	ctx, cancel := context.WithCancel(c.t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); c.finder.Run(ctx) }()
	c.t.Cleanup(func() { cancel(); <-ended })
	synctest.Wait()
}

func (c *cluster) find() ([]broker.Found, error) {
	c.t.Helper()
	synctest.Wait()
	ctx, cancel := context.WithTimeout(c.t.Context(), 2e9)
	defer cancel()
	return c.finder.Find(ctx)
}

// change edits a pod, as its kubelet or its owner would.
func (c *cluster) change(name string, edit func(*corev1.Pod)) {
	c.t.Helper()
	pods := c.api.CoreV1().Pods("media")
	p, err := pods.Get(c.t.Context(), name, metav1.GetOptions{})
	if err == nil {
		edit(p)
		_, err = pods.Update(c.t.Context(), p, metav1.UpdateOptions{})
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) delete(name string) {
	c.t.Helper()
	if err := c.api.CoreV1().Pods("media").Delete(c.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// drop takes a pod out of the Service's slice.
func (c *cluster) drop(name string) {
	c.t.Helper()
	slices := c.api.DiscoveryV1().EndpointSlices("media")
	s, err := slices.Get(c.t.Context(), "janus-x1", metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	kept := s.Endpoints[:0]
	for _, e := range s.Endpoints {
		if e.TargetRef.Name != name {
			kept = append(kept, e)
		}
	}
	s.Endpoints = kept
	if _, err := slices.Update(c.t.Context(), s, metav1.UpdateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) ready(node string, status corev1.ConditionStatus) {
	c.t.Helper()
	n := machine(node)
	n.Status.Conditions[0].Status = status
	if _, err := c.api.CoreV1().Nodes().Update(c.t.Context(), n, metav1.UpdateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// refuse makes lists and watches of a resource fail from now on, and cuts those that run; nil: they work again.
func (c *cluster) refuse(resource string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken[resource] = err
	if err != nil {
		for _, w := range c.watches[resource] {
			w.Stop()
		}
		c.watches[resource] = nil
	}
}

func forbidden(resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", fmt.Errorf("the service account may not"))
}

func owner(kind, name string) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID("uid-of-" + name), Controller: &yes}}
}

// pod is janus-i of a StatefulSet, in its first life, on node-i.
func pod(i int) *corev1.Pod {
	name := fmt.Sprintf("janus-%d", i)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "media", UID: types.UID("uid-of-" + name), OwnerReferences: owner("StatefulSet", "janus"),
			Labels: map[string]string{"apps.kubernetes.io/pod-index": fmt.Sprint(i), "app": "janus"},
		},
		Spec:   corev1.PodSpec{NodeName: fmt.Sprintf("node-%d", i)},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: fmt.Sprintf("10.0.0.%d", i+10)},
	}
}

// slice is what the Service janus has of the pods.
func slice(pods ...*corev1.Pod) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "janus-x1", Namespace: "media", Labels: map[string]string{discoveryv1.LabelServiceName: "janus"}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	s.Ports = []discoveryv1.EndpointPort{port("admin", 7088)}
	for _, p := range pods {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{p.Status.PodIP}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "media", Name: p.Name, UID: p.UID},
		})
	}
	return s
}

func port(name string, number int32) discoveryv1.EndpointPort {
	return discoveryv1.EndpointPort{Name: &name, Port: &number}
}

func machine(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

// two is a Service with two pods.
func two() []runtime.Object {
	return []runtime.Object{pod(0), pod(1), slice(pod(0), pod(1))}
}

func found(i int) broker.Found {
	return broker.Found{Name: fmt.Sprintf("janus-%d", i), Ordinal: i, Address: fmt.Sprintf("http://10.0.0.%d:7088/admin", i+10)}
}
