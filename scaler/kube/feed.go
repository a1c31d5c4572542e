package kube

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// How long a feed waits before it tries again.
const (
	retrySoon = time.Second
	retryLate = 15 * time.Second
)

// feed is a copy of the objects that a list and a watch bring, reduced to what is needed of each.
type feed[T any] struct {
	what    string
	keep    func(old *T, u *unstructured.Unstructured) (T, error) // old: what was kept before; nil: it is new
	changed func()                                                // something is to be looked at; called without the lock

	mu      sync.Mutex
	objects map[string]T // by name
	synced  bool
	failing error            // the last list or watch
	bad     map[string]error // objects that could not be read
}

func newFeed[T any](what string, changed func(), keep func(*T, *unstructured.Unstructured) (T, error)) *feed[T] {
	return &feed[T]{what: what, keep: keep, changed: changed, objects: map[string]T{}, bad: map[string]error{}}
}

// run watches until ctx ends. What goes wrong is tried again.
func (f *feed[T]) run(ctx context.Context, api dynamic.ResourceInterface, client dynamic.Interface, fields, labels string) {
	ctx = klog.NewContext(ctx, logr.Discard()) // what goes wrong is told to whoever asks
	narrow := func(o *metav1.ListOptions) { o.FieldSelector, o.LabelSelector = fields, labels }
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			narrow(&o)
			l, err := api.List(ctx, o)
			if err != nil {
				f.fails(err) // that it works again is told by the watch that follows
			}
			return l, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			narrow(&o)
			w, err := api.Watch(ctx, o)
			f.fails(err)
			return w, err
		},
	}, client)
	log := logr.Discard()
	again := &wait.Backoff{Duration: retrySoon / 2, Factor: 2, Jitter: 1, Steps: 10, Cap: retryLate / 2}
	r := cache.NewReflectorWithOptions(lw, &unstructured.Unstructured{}, f, cache.ReflectorOptions{Name: f.what, Logger: &log, Backoff: again})
	for pause := retrySoon; ctx.Err() == nil; pause = min(2*pause, retryLate) {
		if err := r.ListAndWatchWithContext(ctx); err == nil {
			pause = retrySoon // the watch has ended, as each does at times
		}
		t := time.NewTimer(pause/2 + rand.N(pause/2))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
	}
}

func (f *feed[T]) fails(err error) {
	f.mu.Lock()
	f.failing = err
	f.mu.Unlock()
	f.changed()
}

// get returns the object of a name; ok is false when it is known that there is none.
func (f *feed[T]) get(name string) (v T, ok bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	v, ok = f.objects[name]
	return v, ok, f.trouble()
}

// all returns the objects in no order.
func (f *feed[T]) all() ([]T, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]T, 0, len(f.objects))
	for _, v := range f.objects {
		list = append(list, v)
	}
	return list, f.trouble()
}

// trouble says why the copy is not to be relied on. The lock is held.
func (f *feed[T]) trouble() error {
	switch {
	case f.failing != nil:
		return fmt.Errorf("watch %s: %w", f.what, f.failing)
	case !f.synced:
		return fmt.Errorf("watch %s: not listed yet", f.what)
	}
	for _, err := range f.bad {
		return err
	}
	return nil
}

// The reflector's side.

// Add is for the reflector alone.
func (f *feed[T]) Add(v any) error {
	f.mu.Lock()
	f.put(v)
	f.mu.Unlock()
	f.changed()
	return nil
}

// Update is for the reflector alone.
func (f *feed[T]) Update(v any) error { return f.Add(v) }

// Delete is for the reflector alone.
func (f *feed[T]) Delete(v any) error {
	if u, ok := v.(*unstructured.Unstructured); ok {
		f.mu.Lock()
		delete(f.objects, u.GetName())
		delete(f.bad, u.GetName())
		f.mu.Unlock()
	}
	f.changed()
	return nil
}

// Replace is for the reflector alone.
func (f *feed[T]) Replace(list []any, _ string) error {
	f.mu.Lock()
	there := make(map[string]bool, len(list))
	for _, v := range list {
		there[f.put(v)] = true
	}
	for name := range f.objects {
		if !there[name] {
			delete(f.objects, name)
		}
	}
	for name := range f.bad {
		if !there[name] {
			delete(f.bad, name)
		}
	}
	f.synced = true
	f.mu.Unlock()
	f.changed()
	return nil
}

// Resync is for the reflector alone.
func (f *feed[T]) Resync() error { return nil }

// put keeps an object and returns its name. The lock is held.
func (f *feed[T]) put(v any) string {
	u, ok := v.(*unstructured.Unstructured)
	if !ok {
		return ""
	}
	name := u.GetName()
	var old *T
	if o, ok := f.objects[name]; ok {
		old = &o
	}
	kept, err := f.keep(old, u)
	if err != nil {
		f.bad[name] = fmt.Errorf("read %s %s: %w", f.what, name, err)
		return name
	}
	delete(f.bad, name)
	f.objects[name] = kept
	return name
}
