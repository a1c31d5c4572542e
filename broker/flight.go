package broker

import (
	"context"
	"sync"
	"time"
)

// flight lets concurrent calls with one key share one run. The run is bounded by its own
// timeout and not by the caller that happened to come first, whose going away must not fail the others.
type flight[V any] struct {
	mu   sync.Mutex
	runs map[string]*run[V]
}

type run[V any] struct {
	done chan struct{}
	v    V
	err  error
}

// do returns the result of the run under way for key, or starts one. It blocks until that ends
// or ctx does.
func (f *flight[V]) do(ctx context.Context, key string, timeout time.Duration, fn func(context.Context) (V, error)) (V, error) {
	f.mu.Lock()
	r, ok := f.runs[key]
	if !ok {
		r = &run[V]{done: make(chan struct{})}
		if f.runs == nil {
			f.runs = map[string]*run[V]{}
		}
		f.runs[key] = r
		go func() {
			c, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
			defer cancel()
			r.v, r.err = fn(c)
			f.mu.Lock()
			delete(f.runs, key)
			f.mu.Unlock()
			close(r.done)
		}()
	}
	f.mu.Unlock()
	select {
	case <-r.done:
		return r.v, r.err
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	}
}
