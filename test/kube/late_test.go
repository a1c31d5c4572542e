package kube

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/scaler"
)

// forgetful is a broker that forgets at once what it has released: a higher number takes effect
// at once, and the instances that a lower one has given away take rooms again.
type forgetful struct {
	scaler.Source

	mu     sync.Mutex
	number int
	sealed map[string]bool
}

// PutPlan is scaler.Source's.
func (f *forgetful) PutPlan(ctx context.Context, pool string, ifVersion int64, u brokerapi.PutPlan) (brokerapi.Plan, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	u.GuardMS = 0
	if u.Desired > f.number {
		for name := range f.sealed {
			u.Unseal = append(u.Unseal, name)
		}
	}
	p, err := f.Source.PutPlan(ctx, pool, ifVersion, u)
	if err == nil {
		f.number = u.Desired
		for _, s := range u.Seal {
			f.sealed[s.Instance] = true
		}
	}
	return p, err
}

// lateWrite lets the pool shrink to 10, lets the HPA's write of that come a minute late, and brings load
// back in the meantime. There is no drain hook to make good what is wrong. It returns how many rooms were cut off.
func lateWrite(t *testing.T, source func(scaler.Source) scaler.Source) (cut int) {
	t.Helper()
	var mu sync.Mutex
	slow := false
	late := func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		if !slow {
			return 0
		}
		slow = false
		return time.Minute
	}
	gate(t)
	c := conditions{replicas: 12, tol: exact(), grace: 30 * time.Second, noHook: true, late: late, source: source}
	inWorld(t, c, func(w *world) {
		w.app.open(10, 0)
		w.until(time.Minute, "10 rooms", func() bool { return w.app.waiting() == 0 })
		mu.Lock()
		slow = true
		mu.Unlock()
		w.until(10*time.Minute, "the HPA about to write", func() bool { mu.Lock(); defer mu.Unlock(); return !slow })
		if n := w.spec(); n != 12 {
			t.Fatalf("%d replicas before the late write", n)
		}
		w.app.open(2, 0) // demand for both of the instances that the write will take away
		w.step(55 * time.Second)
		if n := w.spec(); n != 12 {
			t.Fatalf("%d replicas before the late write", n)
		}
		w.until(20*time.Second, "the late write", func() bool { return w.wrote(10) })
		w.until(10*time.Minute, "a place for every room", func() bool { return w.app.waiting() == 0 })
		w.step(10 * time.Minute)
		var deaths []death
		deaths, cut = w.kubelet.ended()
		if len(deaths) < 2 {
			t.Errorf("the late write took %d pods away, want 2", len(deaths))
		}
	})
	return cut
}

func TestG5_LateWrite(t *testing.T) {
	t.Run("a write that comes a minute after load came back costs no room", func(t *testing.T) {
		if cut := lateWrite(t, nil); cut > 0 {
			t.Errorf("%d rooms were cut off", cut)
		}
	})
	t.Run("without the ledger and the guard it does", func(t *testing.T) {
		forget := func(s scaler.Source) scaler.Source { return &forgetful{Source: s, sealed: map[string]bool{}} }
		if cut := lateWrite(t, forget); cut == 0 {
			t.Error("none was cut off")
		}
	})
}
