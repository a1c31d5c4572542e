package kube

import (
	"sync/atomic"
	"testing"
	"time"
)

// busy opens rooms of 3 to 20 minutes so that about n are open at a time, for as long as it is stepped.
func busy(w *world, n int, d time.Duration) {
	for i := range int(d / (10 * time.Second)) {
		if missing := n - len(w.app.rooms); missing > 0 {
			w.app.open(missing, time.Duration(3+(7*i)%18)*time.Minute)
		}
		w.step(10 * time.Second)
	}
}

func TestByHand(t *testing.T) {
	for name, tol := range map[string]tolerance{"tolerance 0": exact(), "a tolerance of 0.1": band()} {
		t.Run("kubectl scale up under load cuts no room, with "+name, func(t *testing.T) {
			gate(t)
			var syncs atomic.Int64
			late := func() time.Duration { return time.Duration(5*syncs.Add(1)%14) * time.Second }
			// Without a hook a wrong number shows at once.
			inWorld(t, conditions{replicas: 12, tol: tol, grace: 30 * time.Second, noHook: true, late: late}, func(w *world) {
				w.app.open(12, 0)
				w.until(time.Minute, "12 rooms", func() bool { return w.app.waiting() == 0 })
				for i := range 12 {
					// Right before the HPA asks, so that it may set back what the scaler then takes into range.
					time.Sleep(time.Until(w.api.nextSync()) - 10*time.Millisecond)
					if err := w.api.scale(w.spec() + 3 + i%4); err != nil {
						t.Fatal(err)
					}
					w.app.open(2, 6*time.Minute)
					w.step(9 * time.Minute)
				}
				deaths, cut := w.kubelet.ended()
				if cut > 0 || len(deaths) == 0 {
					t.Errorf("%d servers ended, with them %d rooms: %+v", len(deaths), cut, deaths)
				}
			})
		})
	}
	t.Run("kubectl scale down under load cuts no room before the hook's grace is over", func(t *testing.T) {
		gate(t)
		const grace = 10 * time.Minute
		inWorld(t, conditions{replicas: 12, tol: exact(), grace: grace}, func(w *world) {
			w.app.open(9, 0)
			w.until(time.Minute, "9 rooms", func() bool { return w.app.waiting() == 0 })
			w.app.open(2, 4*time.Minute)
			w.app.open(1, 0)
			w.until(time.Minute, "12 rooms", func() bool { return w.app.waiting() == 0 })
			if err := w.api.scale(8); err != nil {
				t.Fatal(err)
			}
			busy(w, 12, 20*time.Minute)
			saved := 0
			deaths, cut := w.kubelet.ended()
			for _, d := range deaths {
				switch {
				case len(d.cut) == 0:
					saved++
				case d.held < grace-hookMargin:
					t.Errorf("%s ended after %s with %v on it", d.pod, d.held, d.cut)
				}
			}
			// Two rooms ended within the grace, two were to go on for ever.
			if cut != 2 || saved < 2 {
				t.Errorf("%d rooms were cut off at the end of the grace and %d servers ended empty; want 2 and 2: %+v", cut, saved, deaths)
			}
			w.until(15*time.Minute, "all rooms that are open have a place", func() bool { return w.app.waiting() == 0 })
		})
	})
}
