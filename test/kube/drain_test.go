package kube

import (
	"fmt"
	"testing"
	"time"
)

// longDrain lets a pool go down to keep instances while a room goes on on each of the others, beyond the scaler's
// grace but not beyond the drain hooks': their pods terminate.
func longDrain(t *testing.T, c conditions, keep int, test func(w *world)) {
	t.Helper()
	c.grace, c.drain, c.minimum = 3*time.Hour, 5*time.Minute, keep
	inWorld(t, c, func(w *world) {
		w.app.open(c.replicas, 0)
		w.until(3*time.Minute, "a room on each instance", func() bool { return w.app.waiting() == 0 })
		w.step(time.Minute)
		if n := w.spec(); n != c.replicas {
			w.t.Fatalf("%d replicas with a room on each of %d", n, c.replicas)
		}
		for i := range c.replicas - keep {
			w.app.end(i)
		}
		w.until(15*time.Minute, fmt.Sprintf("%d replicas, the others terminating", keep), func() bool {
			spec, status := w.now()
			return spec == keep && status == c.replicas
		})
		test(w)
	})
}

func TestOneLongDrain(t *testing.T) {
	for _, c := range []struct{ pool, keep int }{{12, 11}, {20, 18}} {
		held := func(w *world) {
			since := time.Now()
			w.step(time.Hour)
			if spec, status := w.now(); spec != c.keep || status != c.pool || w.highest(since) > 0 {
				w.t.Errorf("%d replicas while %d pods exist, at most %d in between; want %d, held while %d exist", spec, status, w.highest(since), c.keep, c.pool)
			}
			// The drain is over: nothing bounces then either.
			for i := c.keep; i < c.pool; i++ {
				w.app.end(i)
			}
			w.until(time.Minute, "all gone", func() bool { _, status := w.now(); return status == c.keep })
			w.step(10 * time.Minute)
			if spec, _ := w.now(); spec != c.keep || w.highest(since) > 0 {
				w.t.Errorf("%d replicas after the drain, at most %d in between; want %d", spec, w.highest(since), c.keep)
			}
			if _, cut := w.kubelet.ended(); cut > 0 {
				w.t.Errorf("%d rooms were cut off", cut)
			}
		}
		t.Run(fmt.Sprintf("a pool of %d does not bounce back with a tolerance of 0.1", c.pool), func(t *testing.T) {
			longDrain(t, conditions{replicas: c.pool, tol: band(), window: 60}, c.keep, held)
		})
		t.Run(fmt.Sprintf("a pool of %d does not bounce back with tolerance 0", c.pool), func(t *testing.T) {
			gate(t)
			longDrain(t, conditions{replicas: c.pool, tol: exact(), window: 60}, c.keep, held)
		})
		t.Run(fmt.Sprintf("a pool of %d grows past it when the load does", c.pool), func(t *testing.T) {
			longDrain(t, conditions{replicas: c.pool, tol: band(), window: 60}, c.keep, func(w *world) {
				w.app.open(c.pool, 0)
				w.until(5*time.Minute, "a place for every room", func() bool { return w.app.waiting() == 0 })
				if _, cut := w.kubelet.ended(); cut > 0 {
					w.t.Errorf("%d rooms were cut off", cut)
				}
			})
		})
	}
	t.Run("it would if the number were answered as it is", func(t *testing.T) {
		longDrain(t, conditions{replicas: 12, tol: band(), window: 60}, 11, func(w *world) {
			w.keda.plain.Store(11)
			w.until(5*time.Minute, "back at 12", func() bool { return w.spec() == 12 })
		})
	})
}

func TestSteps(t *testing.T) {
	cases := []struct {
		name                      string
		tol                       tolerance
		present, rooms, peak, end int
	}{
		{"20 to 21 is exact with tolerance 0", exact(), 20, 21, 21, 21},
		{"20 to 21 goes by 23 with a tolerance of 0.1", band(), 20, 21, 23, 21},
		{"20 to 23 is exact with a tolerance of 0.1", band(), 20, 23, 23, 23},
		{"20 to 19 is exact with tolerance 0", exact(), 20, 19, 19, 19},
		{"20 to 19 is held with a tolerance of 0.1", band(), 20, 19, 0, 20},
		{"20 to 18 is one step with a tolerance of 0.1", band(), 20, 18, 18, 18},
		{"9 to 8 is exact with a tolerance of 0.1", band(), 9, 8, 8, 8},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			gate(t)
			inWorld(t, conditions{replicas: c.present, tol: c.tol, grace: time.Hour, window: 60}, func(w *world) {
				since := time.Now()
				w.app.open(c.rooms, 0)
				w.step(15 * time.Minute)
				if n := w.spec(); n != c.end || w.highest(since) != c.peak {
					w.t.Errorf("%d replicas, written at most %d; want %d and %d", n, w.highest(since), c.end, c.peak)
				}
				if n := w.app.waiting(); n > 0 {
					w.t.Errorf("%d rooms have no place: %s", n, w)
				}
				since = time.Now()
				w.step(20 * time.Minute)
				if n := w.highest(since); n > 0 {
					w.t.Errorf("then it went to %d", n)
				}
				if _, cut := w.kubelet.ended(); cut > 0 {
					w.t.Errorf("%d rooms were cut off", cut)
				}
			})
		})
	}
}
