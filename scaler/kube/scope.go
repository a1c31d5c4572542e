package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/roomscaler/roomscaler/scaler"
)

// What is read.
var (
	scaledObjects = schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}
	statefulSets  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}
	podsResource  = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	autoscalers   = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}
)

// scope is everything that is watched for one ScaledObject.
type scope struct {
	ref    scaler.Ref
	client dynamic.Interface
	poked  chan struct{} // something has changed

	mu      sync.Mutex
	askedAt time.Time
	object  *watched[scaledObject]
	set     *watched[statefulSet]
	hpa     *watched[scaler.Autoscaler]
	pods    *watched[pod]
	bucket  bucket
}

// watched is a feed that runs, and what it was started for.
type watched[T any] struct {
	*feed[T]
	of   string // the selector
	stop func()
}

func newScope(ref scaler.Ref, client dynamic.Interface) *scope {
	return &scope{ref: ref, client: client, poked: make(chan struct{}, 1), bucket: newBucket()}
}

func (s *scope) asked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.askedAt = time.Now()
}

func (s *scope) silent() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.askedAt)
}

func (s *scope) poke() {
	select {
	case s.poked <- struct{}{}:
	default:
	}
}

// run watches until ctx ends or forget says that nobody asks any more. What to watch follows from what is seen.
func (s *scope) run(ctx context.Context, forget func(*scope) bool) {
	ctx, cancel := context.WithCancel(ctx)
	var feeds sync.WaitGroup
	defer feeds.Wait()
	defer cancel()
	idle := time.NewTicker(forgetAfter / 10)
	defer idle.Stop()
	for {
		s.follow(ctx, &feeds)
		select {
		case <-ctx.Done():
			return
		case <-s.poked:
		case <-idle.C:
			if forget(s) {
				return
			}
		}
	}
}

// follow starts the feeds that are needed now, and ends those that are not.
func (s *scope) follow(ctx context.Context, feeds *sync.WaitGroup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.object = follow(ctx, feeds, s, s.object, scaledObjects, named(s.ref.Name), "", keepScaledObject)
	o, ok, err := s.object.get(s.ref.Name)
	if err != nil {
		return // what was watched before is watched on
	}
	if !ok || o.refused() != nil {
		s.set, s.hpa, s.pods = unfollow(s.set), unfollow(s.hpa), unfollow(s.pods)
		return
	}
	s.set = follow(ctx, feeds, s, s.set, statefulSets, named(o.Spec.ScaleTargetRef.Name), "", keepStatefulSet)
	s.hpa = follow(ctx, feeds, s, s.hpa, autoscalers, named(o.hpaName()), "", keepAutoscaler)
	if set, ok, err := s.set.get(o.Spec.ScaleTargetRef.Name); ok && err == nil {
		s.pods = follow(ctx, feeds, s, s.pods, podsResource, "", set.selector, keepPod)
	}
}

func named(name string) string { return "metadata.name=" + name }

// follow returns the feed for the selectors: the one that runs if it is for them, else a new one in its place.
func follow[T any](ctx context.Context, feeds *sync.WaitGroup, s *scope, now *watched[T], r schema.GroupVersionResource, fields, labels string, keep keeper[T]) *watched[T] {
	of := fields + " " + labels
	if now != nil && now.of == of {
		return now
	}
	unfollow(now)
	ctx, stop := context.WithCancel(ctx)
	w := &watched[T]{feed: newFeed(r.Resource+" in "+s.ref.Namespace, s.poke, keep), of: of, stop: stop}
	feeds.Go(func() { w.run(ctx, s.client.Resource(r).Namespace(s.ref.Namespace), s.client, fields, labels) })
	return w
}

func unfollow[T any](w *watched[T]) *watched[T] {
	if w != nil {
		w.stop()
	}
	return nil
}

var errBeginning = errors.New("nothing has been listed yet")

// view puts together what the feeds have.
func (s *scope) view() (scaler.Workload, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.object == nil {
		return scaler.Workload{}, errBeginning
	}
	o, ok, err := s.object.get(s.ref.Name)
	switch {
	case err != nil:
		return scaler.Workload{}, err
	case !ok:
		return scaler.Workload{}, scaler.ErrNoScaledObject
	}
	if err := o.refused(); err != nil {
		return scaler.Workload{}, &scaler.RefusedError{Ref: s.ref, Why: err.Error()}
	}
	name := o.Spec.ScaleTargetRef.Name
	if s.set == nil || s.hpa == nil || s.set.of != named(name)+" " || s.hpa.of != named(o.hpaName())+" " {
		return scaler.Workload{}, errBeginning
	}
	set, ok, err := s.set.get(name)
	switch {
	case err != nil:
		return scaler.Workload{}, err
	case !ok:
		return scaler.Workload{}, fmt.Errorf("there is no StatefulSet %s in namespace %s", name, s.ref.Namespace)
	}
	if s.pods == nil || s.pods.of != " "+set.selector {
		return scaler.Workload{}, errBeginning
	}
	hpa, scaled, err := s.hpa.get(o.hpaName())
	if err != nil {
		return scaler.Workload{}, err
	}
	list, err := s.pods.all()
	if err != nil {
		return scaler.Workload{}, err
	}
	w := scaler.Workload{
		Name: name, Replicas: set.replicas, Status: set.status, Start: set.start, Minimum: o.minimum(), Maximum: o.maximum(),
		Pods: podsOf(list, set), Paused: o.pausedAt(), Idle: intOf(o.Spec.IdleReplicaCount),
	}
	if scaled {
		w.HPA = &hpa
	}
	w.Settings = settings(&o, &set, scaled)
	return w, nil
}

// podsOf returns the pods of a StatefulSet in order. The selector may match others.
func podsOf(list []pod, set statefulSet) []scaler.Pod {
	var pods []scaler.Pod
	for _, p := range list {
		if p.owner != set.uid || p.ordinal < 0 {
			continue
		}
		shown := p.Pod
		shown.Ordinal = p.ordinal - set.start
		shown.AgeMS = time.Since(p.seen).Milliseconds()
		pods = append(pods, shown)
	}
	slices.SortFunc(pods, func(a, b scaler.Pod) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	return pods
}

func intOf(n *int32) *int {
	if n == nil {
		return nil
	}
	v := int(*n)
	return &v
}
