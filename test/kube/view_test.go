package kube

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	appslisters "k8s.io/client-go/listers/apps/v1"
	autoscalinglisters "k8s.io/client-go/listers/autoscaling/v2"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/scaler"
)

// clusterView is the scaler's eye on the world, through the same informers as the controllers.
type clusterView struct {
	api  *apiServer
	sets appslisters.StatefulSetLister
	pods corelisters.PodLister
	hpas autoscalinglisters.HorizontalPodAutoscalerLister

	mu   sync.Mutex
	seen map[types.UID]time.Time
}

func newClusterView(api *apiServer, f informers.SharedInformerFactory) *clusterView {
	return &clusterView{
		api: api, sets: f.Apps().V1().StatefulSets().Lister(), pods: f.Core().V1().Pods().Lister(),
		hpas: f.Autoscaling().V2().HorizontalPodAutoscalers().Lister(), seen: map[types.UID]time.Time{},
	}
}

// View is scaler.Cluster's.
func (v *clusterView) View(ref scaler.Ref) (scaler.Workload, error) {
	set, err := v.sets.StatefulSets(ref.Namespace).Get(ref.Name)
	if err != nil {
		return scaler.Workload{}, fmt.Errorf("read the StatefulSet: %w", err)
	}
	hpa, err := v.hpas.HorizontalPodAutoscalers(ref.Namespace).Get(ref.Name)
	if err != nil {
		return scaler.Workload{}, fmt.Errorf("read the HPA: %w", err)
	}
	pods, err := v.pods.Pods(ref.Namespace).List(labels.Everything())
	if err != nil {
		return scaler.Workload{}, fmt.Errorf("read the pods: %w", err)
	}
	w := scaler.Workload{
		Name: ref.Name, Replicas: int(*set.Spec.Replicas), Status: int(set.Status.Replicas), Minimum: int(*hpa.Spec.MinReplicas), Maximum: maximum, HPA: autoscalerOf(hpa),
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range pods {
		if _, ok := v.seen[p.UID]; !ok {
			v.seen[p.UID] = time.Now()
		}
		ordinal, _ := broker.OrdinalOf(p.Name)
		w.Pods = append(w.Pods, scaler.Pod{
			Ordinal: ordinal, UID: string(p.UID), Terminating: p.DeletionTimestamp != nil, Ready: isReady(p),
			Started: len(p.Status.ContainerStatuses) > 0, AgeMS: time.Since(v.seen[p.UID]).Milliseconds(),
		})
	}
	slices.SortFunc(w.Pods, func(a, b scaler.Pod) int { return a.Ordinal - b.Ordinal })
	return w, nil
}

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// Live is scaler.Cluster's: it asks past the informers.
func (v *clusterView) Live(context.Context, scaler.Ref) (int, error) {
	set, err := v.api.set()
	if err != nil {
		return 0, err
	}
	return int(*set.Spec.Replicas), nil
}

// Event is scaler.Cluster's. It is not kept.
func (v *clusterView) Event(scaler.Ref, scaler.Event) {}
