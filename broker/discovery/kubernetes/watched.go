package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// How long it waits before it asks again for what could not be had.
const (
	retrySoon = time.Second
	retryLate = 15 * time.Second
)

// watched is a copy of one kind of object, kept up to date by a watch. It keeps only what strip leaves of an object.
type watched[T runtime.Object] struct {
	what string
	cache.Store
	strip     func(T) T
	reflector *cache.Reflector

	mu      sync.Mutex
	synced  bool  // it has been complete once
	failing error // the last try to list or to watch went wrong
	changed chan struct{}
}

// api are the calls of a typed client for one kind of object.
type api[L runtime.Object] interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// newWatched makes a copy of the objects that have the selector's labels; example is an empty one.
func newWatched[T, L runtime.Object](what string, c Client, calls api[L], selector string, example T, strip func(T) T) *watched[T] {
	w := &watched[T]{what: what, Store: cache.NewStore(cache.MetaNamespaceKeyFunc), strip: strip, changed: make(chan struct{})}
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = selector
			l, err := calls.List(ctx, o)
			if err != nil {
				w.failed(err) // success is told by Replace, and by the watch that follows
			}
			return l, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = selector
			events, err := calls.Watch(ctx, o)
			w.failed(err)
			return events, err
		},
	}
	log := logr.Discard() // what goes wrong is told to whoever asks
	// This is how it tries a watch again that could not be opened.
	again := &wait.Backoff{Duration: retrySoon / 2, Factor: 2, Jitter: 1, Steps: 10, Cap: retryLate / 2}
	w.reflector = cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, c), example, w, cache.ReflectorOptions{Name: what, Logger: &log, Backoff: again})
	return w
}

// run watches until ctx ends. What goes wrong is tried again, the first time soon.
func (w *watched[T]) run(ctx context.Context) {
	ctx = klog.NewContext(ctx, logr.Discard())
	for pause := retrySoon; ctx.Err() == nil; {
		if err := w.reflector.ListAndWatchWithContext(ctx); err == nil {
			pause = retrySoon // the watch has ended, as each does at times
		}
		t := time.NewTimer(pause/2 + rand.N(pause/2))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
		pause = min(2*pause, retryLate)
	}
}

func (w *watched[T]) failed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // its URL is another each time, and long
	}
	if err != nil {
		err = fmt.Errorf("watching %s: %w", w.what, err)
	}
	w.failing = err
	w.tell()
}

func (w *watched[T]) tell() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// current returns nil when the copy is complete and its watch runs, and says else why it is not. It waits for the
// first copy as long as nothing has gone wrong.
func (w *watched[T]) current(ctx context.Context) error {
	for {
		w.mu.Lock()
		synced, failing, changed := w.synced, w.failing, w.changed
		w.mu.Unlock()
		if failing != nil || synced {
			return failing
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the first list of %s: %w", w.what, ctx.Err())
		}
	}
}

// knows is current without waiting.
func (w *watched[T]) knows() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.synced && w.failing == nil
}

// all returns the objects in no order. They are not to be changed.
func (w *watched[T]) all() []T {
	list := w.Store.List()
	out := make([]T, len(list))
	for i, v := range list {
		out[i] = v.(T)
	}
	return out
}

// The reflector's side: it keeps the store.

// Add is for the reflector alone.
func (w *watched[T]) Add(v any) error { return w.Store.Add(w.strip(v.(T))) }

// Update is for the reflector alone.
func (w *watched[T]) Update(v any) error { return w.Store.Update(w.strip(v.(T))) }

// Replace is for the reflector alone.
func (w *watched[T]) Replace(list []any, version string) error {
	stripped := make([]any, len(list))
	for i, v := range list {
		stripped[i] = w.strip(v.(T))
	}
	if err := w.Store.Replace(stripped, version); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.synced = true
	w.tell()
	return nil
}
