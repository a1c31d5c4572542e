package broker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/roomscaler/roomscaler/broker"
)

func TestG6_DirectoryCanBeLost(t *testing.T) {
	bubble(t, "a flush under load: every room finds its home again, none gets two, marks and the number stay", func(t *testing.T) {
		pool := newFakePool("j-0", "j-1", "j-2")
		a := newRig(t, pool)
		b := join(t, pool, a.store)
		b.sweep(1)
		home := map[string]string{}
		for i := range 30 {
			p := a.create(fmt.Sprintf("r%d", i))
			home[p.Pin.Room] = p.Instance.Name
			pool.join(t, p, 1, 0)
		}
		if _, err := a.Drain(t.Context(), "j-1", broker.MarkRequest{Owner: broker.OwnerHook, Grace: time.Hour}); err != nil {
			t.Fatal(err)
		}
		f, _ := a.Facts(t.Context())
		if _, err := a.PutPlan(t.Context(), f.Term, broker.PlanUpdate{Desired: 5}); err != nil {
			t.Fatal(err)
		}
		a.sweep(2)
		b.sweep(1)

		a.store.flush()
		if _, err := b.Lookup(t.Context(), "r3", false); !errors.Is(err, broker.ErrRebuilding) {
			t.Errorf("lookup in an empty store: %v; want rebuilding, not not-found", err)
		}
		if _, _, err := b.CreateRoom(t.Context(), broker.CreateRequest{Room: "r3"}); !errors.Is(err, broker.ErrRebuilding) {
			t.Errorf("create: %v; want rebuilding", err)
		}
		begun := time.Now()
		for range 3 {
			a.sweep(1)
			b.Sweep(t.Context())
			if f, err := a.Facts(t.Context()); err == nil && f.Phase == broker.Ready {
				break
			}
		}
		if d := time.Since(begun); d > 2*a.Config().SweepInterval {
			t.Errorf("the rebuild took %v, more than two sweeps", d)
		}
		for room, want := range home {
			p, fresh, err := b.CreateRoom(t.Context(), broker.CreateRequest{Room: room})
			if err != nil || fresh || p.Instance.Name != want {
				t.Errorf("%s is on %q (fresh %v, %v); its people are on %s", room, p.Instance.Name, fresh, err, want)
			}
			if d := cmp.Diff(pool.homes(room), []string{want}); d != "" {
				t.Errorf("%s: %s", room, d)
			}
		}
		m, ok := a.instance("j-1").Mark(broker.OwnerHook)
		if left, has := m.Remaining(0); !ok || !has || left > time.Hour {
			t.Errorf("the hook's mark is %+v", m)
		}
		f, _ = a.Facts(t.Context())
		if f.Floor < 5 {
			t.Errorf("the first plan may be %d; 5 was answered before", f.Floor)
		}
		if _, err := a.PutPlan(t.Context(), f.Term, broker.PlanUpdate{Desired: 4}); err == nil {
			t.Error("a plan below the last number was stored")
		}
	})

	bubble(t, "a flush while a lower number is on its way: what that would take away takes no room", func(t *testing.T) {
		pool := newFakePool("j-0", "j-1", "j-2")
		a := newRig(t, pool)
		b := join(t, pool, a.store)
		f, _ := a.Facts(t.Context())
		for i, u := range []broker.PlanUpdate{
			{Desired: 3},
			{Desired: 2, Seal: []broker.SealRequest{{Instance: "j-2", Incarnation: f.Instances[2].Incarnation}}},
			{Desired: 3, Unseal: []string{"j-2"}, GuardFor: time.Minute},
		} {
			if _, err := a.Drain(t.Context(), "j-2", broker.MarkRequest{Owner: broker.OwnerScaler}); err != nil {
				t.Fatal(err)
			}
			u.IfVersion = int64(i)
			if _, err := a.PutPlan(t.Context(), f.Term, u); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := a.Uncordon(t.Context(), "j-2", broker.OwnerScaler); err != nil {
			t.Fatal(err)
		}
		a.store.flush()
		for range 3 {
			a.sweep(1)
			b.Sweep(t.Context())
		}
		f, _ = a.Facts(t.Context())
		create := func(when string) {
			for i := range 12 {
				if p := b.create(fmt.Sprint(when, i)); p.Instance.Name == "j-2" {
					t.Fatalf("%s: %s is on j-2, which a number answered before the flush takes away", when, p.Pin.Room)
				}
			}
		}
		create("before the first plan")
		if _, err := a.PutPlan(t.Context(), f.Term, broker.PlanUpdate{Desired: 3, GuardFor: time.Minute}); err != nil {
			t.Fatal(err)
		}
		create("after it")
	})
	bubble(t, "an instance that hangs meanwhile keeps its rooms by a broker's memory", func(t *testing.T) {
		pool := newFakePool("j-0", "j-1")
		r := newRig(t, pool)
		p := r.create("r")
		pool.join(t, p, 2, 0)
		r.sweep(1)
		pool.at(p.Instance.Name, func(s *fakeServer) { s.fault = broker.FaultTimeout })
		r.store.flush()
		r.sweep(3)
		q, fresh, err := r.CreateRoom(t.Context(), broker.CreateRequest{Room: "r"})
		if err != nil || fresh || q.Instance.Name != p.Instance.Name || q.Pin.Epoch != p.Pin.Epoch {
			t.Errorf("on %s, fresh %v, %v; want the pin of before", q.Instance.Name, fresh, err)
		}
		r.create("another") // the hung one does not hold the rebuild
	})

	bubble(t, "a broker that begins with an empty store knows all rooms when it takes the first", func(t *testing.T) {
		pool := newFakePool("j-0", "j-1")
		old := newRig(t, pool)
		for i := range 10 {
			pool.join(t, old.create(fmt.Sprintf("r%d", i)), 1, 0)
		}
		r := join(t, pool, &flaky{Store: newStore()})
		r.sweep(2)
		for i := range 10 {
			if _, fresh, err := r.CreateRoom(t.Context(), broker.CreateRequest{Room: fmt.Sprintf("r%d", i)}); err != nil || fresh {
				t.Errorf("r%d: fresh %v, %v", i, fresh, err)
			}
		}
	})

	bubble(t, "an instance whose rooms may be hidden has not answered", func(t *testing.T) {
		pool := newFakePool("j-0", "j-1")
		pool.at("j-1", func(s *fakeServer) { s.private = true })
		r := join(t, pool, &flaky{Store: newStore()})
		r.sweep(5)
		if _, _, err := r.CreateRoom(t.Context(), broker.CreateRequest{Room: "r"}); !errors.Is(err, broker.ErrRebuilding) {
			t.Errorf("create: %v; want rebuilding", err)
		}
	})

	bubble(t, "a released instance stays released", func(t *testing.T) {
		pool := newFakePool("j-0", "j-1")
		r := newRig(t, pool)
		f, _ := r.Facts(t.Context())
		if _, err := r.Drain(t.Context(), "j-1", broker.MarkRequest{Owner: broker.OwnerScaler}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.PutPlan(t.Context(), f.Term, broker.PlanUpdate{Desired: 2}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.PutPlan(t.Context(), f.Term, broker.PlanUpdate{IfVersion: 1, Desired: 1, Seal: []broker.SealRequest{{Instance: "j-1", Incarnation: r.instance("j-1").Incarnation}}}); err != nil {
			t.Fatal(err)
		}
		r.store.flush()
		r.sweep(3)
		if got := r.instance("j-1").State(); got != broker.StateReleased {
			t.Errorf("%s; want released", got)
		}
	})

	bubble(t, "a create that finds the store empty brings the next sweep forward", func(t *testing.T) {
		pool := newFakePool("j-0")
		r := newRig(t, pool)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		flushed := make(chan struct{})
		var once sync.Once
		go r.Run(ctx, func(broker.SweepReport) { once.Do(func() { r.store.flush(); close(flushed) }) })
		<-flushed
		_, _, _ = r.CreateRoom(t.Context(), broker.CreateRequest{Room: "r"})
		time.Sleep(7500 * time.Millisecond) // the hold of one sweep, and some
		r.create("r")
	})

	bubble(t, "an instance that hangs and that nobody remembers holds the rebuild, until it is fenced", func(t *testing.T) {
		pool := newFakePool("j-0", "j-1")
		pool.at("j-1", func(s *fakeServer) { s.fault = broker.FaultTimeout })
		r := join(t, pool, &flaky{Store: newStore()})
		r.sweep(5)
		if _, _, err := r.CreateRoom(t.Context(), broker.CreateRequest{Room: "r"}); !errors.Is(err, broker.ErrRebuilding) {
			t.Errorf("create: %v; want rebuilding", err)
		}
		if _, err := r.Lost(t.Context(), "j-1", ""); err != nil {
			t.Fatal(err)
		}
		r.sweep(1)
		r.create("r")
	})

	bubble(t, "an instance that refuses connections and that nobody remembers does not hold the rebuild", func(t *testing.T) {
		pool := newFakePool("j-0", "j-1")
		pool.at("j-1", func(s *fakeServer) { s.fault = broker.FaultRefused })
		r := newRig(t, pool)
		r.create("r")
	})

	bubble(t, "a room torn down before the loss and destroyed meanwhile does not come back", func(t *testing.T) {
		pool := newFakePool("j-0")
		r := newRig(t, pool)
		r.create("r")
		r.sweep(1)
		if err := r.DeleteRoom(t.Context(), "r", 0); err != nil {
			t.Fatal(err)
		}
		r.store.flush()
		r.sweep(3)
		if _, err := r.Lookup(t.Context(), "r", false); !errors.Is(err, broker.ErrRoomNotFound) {
			t.Errorf("lookup: %v", err)
		}
	})

	bubble(t, "a create under way when the content was lost leaves one home", func(t *testing.T) {
		pool := newFakePool("j-0", "j-1")
		r := newRig(t, pool)
		pool.at("j-0", func(s *fakeServer) { s.late = true })
		_, _, _ = r.CreateRoom(t.Context(), broker.CreateRequest{Room: "r"})
		pool.at("j-0", func(s *fakeServer) { s.late = false })
		r.store.flush()
		r.sweep(3)
		p := r.create("r")
		if d := cmp.Diff(pool.homes("r"), []string{p.Instance.Name}); d != "" {
			t.Error(d)
		}
	})
}
