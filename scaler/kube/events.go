package kube

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/roomscaler/roomscaler/scaler"
)

const (
	maxQueued = 100  // Events that wait to be written
	maxNote   = 1000 // bytes; the API takes 1024
	// maxNameHead is how much of a ScaledObject's name an Event's name begins with; the API takes 253 in all.
	maxNameHead = 200
	// Each ScaledObject may have so many at once, and then one in each interval.
	eventBurst = 25
	eventEvery = 10 * time.Second
	eventLimit = 5 * time.Second // for writing one
)

var eventsResource = schema.GroupVersionResource{Version: "v1", Resource: "events"}

type event struct {
	scaler.Event
	ref scaler.Ref
	uid string
	at  time.Time
}

// Event implements scaler.Cluster. What comes too often is dropped.
func (w *Watcher) Event(ref scaler.Ref, e scaler.Event) {
	s := w.scope(ref)
	uid, ok := s.admit(time.Now())
	if !ok {
		return
	}
	select {
	case w.events <- event{e, ref, uid, time.Now()}:
	default:
	}
}

// admit takes one Event out of the allowance, and returns the uid of the ScaledObject as far as it is known.
func (s *scope) admit(now time.Time) (uid string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.object != nil {
		if o, there, _ := s.object.get(s.ref.Name); there {
			uid = string(o.Metadata.UID)
		}
	}
	return uid, s.bucket.take(now)
}

// bucket is an allowance.
type bucket struct {
	left int
	at   time.Time // when it was last filled
}

func newBucket() bucket { return bucket{left: eventBurst} }

func (b *bucket) take(now time.Time) bool {
	if n := int(now.Sub(b.at) / eventEvery); n > 0 {
		b.left = min(eventBurst, b.left+min(n, eventBurst))
		b.at = now
	}
	if b.left == 0 {
		return false
	}
	b.left--
	return true
}

// writeEvents writes what is queued until ctx ends. One that cannot be written is lost.
func (w *Watcher) writeEvents(ctx context.Context) {
	trouble := false
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-w.events:
			err := w.writeEvent(ctx, e)
			if err != nil && !trouble && ctx.Err() == nil {
				w.log.Warn("events cannot be written", "namespace", e.ref.Namespace, "error", err)
			}
			trouble = err != nil
		}
	}
}

func (w *Watcher) writeEvent(ctx context.Context, e event) error {
	ctx, cancel := context.WithTimeout(ctx, eventLimit)
	defer cancel()
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	at, name := metav1.NewTime(e.at), e.ref.Name
	if len(name) > maxNameHead {
		name = name[:maxNameHead]
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&corev1.Event{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x", name, e.at.UnixNano()), Namespace: e.ref.Namespace},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: scaledObjects.GroupVersion().String(), Kind: "ScaledObject", Name: e.ref.Name, Namespace: e.ref.Namespace, UID: types.UID(e.uid),
		},
		Reason: e.Reason, Message: clip(e.Note, maxNote), Type: kind, Source: corev1.EventSource{Component: "roomscaler"},
		FirstTimestamp: at, LastTimestamp: at, Count: 1, ReportingController: "roomscaler",
	})
	if err != nil {
		return err
	}
	_, err = w.client.Resource(eventsResource).Namespace(e.ref.Namespace).Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	return err
}
