package kube

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

var (
	podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	setResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	hpaResource = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
)

// apiServer is client-go's API server in memory with what the controllers need besides: resource versions, uids,
// a status that is apart from the spec, and pods that terminate instead of being gone at once.
type apiServer struct {
	*fake.Clientset
	versions atomic.Int64
	uids     atomic.Int64

	mu     sync.Mutex // held from a read to the write that rests on it
	specs  []spec
	synced time.Time // when the HPA last began to sync
}

// spec is a change of the StatefulSet's spec.replicas.
type spec struct {
	at time.Time
	n  int
}

func newAPIServer() *apiServer {
	a := &apiServer{Clientset: fake.NewSimpleClientset()} //nolint:staticcheck // nobody applies fields here
	for _, verb := range []string{"create", "update"} {
		a.PrependReactor(verb, "*", func(act clienttesting.Action) (bool, runtime.Object, error) {
			a.stamp(act.(interface{ GetObject() runtime.Object }).GetObject())
			return false, nil, nil
		})
	}
	a.PrependReactor("create", "pods", func(act clienttesting.Action) (bool, runtime.Object, error) {
		act.(clienttesting.CreateAction).GetObject().(*corev1.Pod).Status.Phase = corev1.PodPending
		return false, nil, nil
	})
	a.PrependReactor("create", "events", func(act clienttesting.Action) (bool, runtime.Object, error) {
		return true, act.(clienttesting.CreateAction).GetObject(), nil
	})
	a.PrependReactor("update", "statefulsets", a.status(func(o runtime.Object) (runtime.Object, error) {
		set := o.(*appsv1.StatefulSet)
		return edit(a, setResource, set.Name, func(s *appsv1.StatefulSet) { s.Status = set.Status })
	}))
	a.PrependReactor("update", "horizontalpodautoscalers", a.status(func(o runtime.Object) (runtime.Object, error) {
		hpa := o.(*autoscalingv2.HorizontalPodAutoscaler)
		return edit(a, hpaResource, hpa.Name, func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Status = hpa.Status })
	}))
	a.PrependReactor("delete", "pods", func(act clienttesting.Action) (bool, runtime.Object, error) {
		_, err := edit(a, podResource, act.(clienttesting.DeleteAction).GetName(), func(p *corev1.Pod) {
			if p.DeletionTimestamp == nil {
				now := metav1.Now()
				p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &now, p.Spec.TerminationGracePeriodSeconds
			}
		})
		return true, nil, err
	})
	return a
}

// status makes a reactor of what stores only the status.
func (a *apiServer) status(store func(runtime.Object) (runtime.Object, error)) clienttesting.ReactionFunc {
	return func(act clienttesting.Action) (bool, runtime.Object, error) {
		if act.GetSubresource() != "status" {
			return false, nil, nil
		}
		o, err := store(act.(clienttesting.UpdateAction).GetObject())
		return true, o, err
	}
}

func (a *apiServer) stamp(o runtime.Object) {
	m, err := meta.Accessor(o)
	if err != nil {
		return
	}
	m.SetResourceVersion(fmt.Sprint(100 + a.versions.Add(1)))
	if m.GetUID() == "" {
		m.SetUID(types.UID(fmt.Sprintf("uid-%d", a.uids.Add(1))))
		m.SetCreationTimestamp(metav1.Now())
	}
}

// edit changes what is stored.
func edit[T any, P interface {
	*T
	runtime.Object
	DeepCopy() *T
}](a *apiServer, kind schema.GroupVersionResource, name string, change func(P)) (runtime.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	o, err := a.Tracker().Get(kind, namespace, name)
	if err != nil {
		return nil, err
	}
	next := P(P(o.(P)).DeepCopy())
	change(next)
	a.stamp(next)
	return next, a.Tracker().Update(kind, next, namespace)
}

// scale writes spec.replicas of the StatefulSet, as kubectl scale does.
func (a *apiServer) scale(n int) error {
	_, err := edit(a, setResource, setName, func(s *appsv1.StatefulSet) {
		replicas := int32(n)
		if *s.Spec.Replicas != replicas {
			a.specs = append(a.specs, spec{time.Now(), n})
		}
		s.Spec.Replicas = &replicas
	})
	return err
}

// nextSync is when the HPA begins to sync again, if it writes nothing in this one.
func (a *apiServer) nextSync() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.synced.Add(answerTime + syncPeriod)
}

func (a *apiServer) set() (*appsv1.StatefulSet, error) {
	o, err := a.Tracker().Get(setResource, namespace, setName)
	if err != nil {
		return nil, err
	}
	return o.(*appsv1.StatefulSet), nil
}

// scales is the StatefulSet's scale as the HPA uses it. A write comes as late as late says.
func (a *apiServer) scales(late func() time.Duration) scales {
	return scales{
		read: func(name string) (*autoscalingv1.Scale, error) {
			s, err := a.set()
			if err != nil {
				return nil, err
			}
			a.mu.Lock()
			a.synced = time.Now()
			a.mu.Unlock()
			return scaleOf(name, *s.Spec.Replicas, s.Status.Replicas), nil
		},
		write: func(_ string, n int32) error {
			time.Sleep(late())
			return a.scale(int(n))
		},
	}
}

func (a *apiServer) pods(ctx context.Context) ([]corev1.Pod, error) {
	l, err := a.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return l.Items, nil
}

// newSet is the StatefulSet that the chart makes.
func newSet(replicas int, grace time.Duration) *appsv1.StatefulSet {
	n, history, seconds := int32(replicas), int32(10), int64(grace.Seconds())
	labels := map[string]string{"app": setName}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: setName, Namespace: namespace, Generation: 1},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &n, ServiceName: setName, RevisionHistoryLimit: &history,
			PodManagementPolicy: appsv1.ParallelPodManagement,
			UpdateStrategy:      appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
			Selector:            &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{TerminationGracePeriodSeconds: &seconds, Containers: []corev1.Container{{Name: "janus", Image: "janus"}}},
			},
		},
	}
}
