package broker_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/roomscaler/roomscaler/broker"
)

// bubble runs a test on fake time.
func bubble(t *testing.T, name string, fn func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, fn) })
}

func TestG1_OneHome(t *testing.T) {
	bubble(t, "200 concurrent creates through two brokers agree on one pin", func(t *testing.T) {
		pool := newFakePool("j-0", "j-1", "j-2")
		a := newRig(t, pool)
		b := join(t, pool, a.store)
		b.sweep(1)
		var (
			wg    sync.WaitGroup
			mu    sync.Mutex
			fresh int
			pins  = map[broker.Epoch]string{}
		)
		for i := range 200 {
			wg.Go(func() {
				p, isNew, err := []*rig{a, b}[i%2].CreateRoom(t.Context(), broker.CreateRequest{Room: "r"})
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				if isNew {
					fresh++
				}
				pins[p.Pin.Epoch] = p.Instance.Name
			})
		}
		wg.Wait()
		if fresh != 1 || len(pins) != 1 || len(pool.homes("r")) != 1 {
			t.Errorf("%d fresh, pins %v, homes %v; want one of each", fresh, pins, pool.homes("r"))
		}
	})

	bubble(t, "a broker killed between claim and create leaves a pin that the next call finishes", func(t *testing.T) {
		pool := newFakePool("j-0", "j-1")
		r := newRig(t, pool)
		f, _ := r.Facts(t.Context())
		pin, _, err := r.store.Claim(t.Context(), f.Term, broker.ClaimRequest{Room: "r", Pick: broker.PickLeast, Candidates: []broker.Candidate{{Instance: "j-1", Incarnation: r.instance("j-1").Incarnation}}})
		if err != nil {
			t.Fatal(err)
		}
		got := r.create("r")
		if got.Pin.Epoch != pin.Epoch || got.Pin.State != broker.Live {
			t.Errorf("pin %+v; want the claimed one, live", got.Pin)
		}
		if d := cmp.Diff(pool.homes("r"), []string{"j-1"}); d != "" {
			t.Error(d)
		}
	})

	bubble(t, "a sweep leaves a claim alone while its create may be on its way", func(t *testing.T) {
		pool := newFakePool("j-0")
		r := newRig(t, pool)
		f, _ := r.Facts(t.Context())
		pin, _, err := r.store.Claim(t.Context(), f.Term, broker.ClaimRequest{Room: "r", Candidates: []broker.Candidate{{Instance: "j-0", Incarnation: r.instance("j-0").Incarnation}}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		r.Sweep(t.Context())
		if p, err := r.Lookup(t.Context(), "r", false); err != nil || p.Pin.Epoch != pin.Epoch {
			t.Errorf("%+v, %v; want the claim", p.Pin, err)
		}
	})

	bubble(t, "a claim that nobody finishes ends in a sweep", func(t *testing.T) {
		pool := newFakePool("j-0")
		r := newRig(t, pool)
		f, _ := r.Facts(t.Context())
		if _, _, err := r.store.Claim(t.Context(), f.Term, broker.ClaimRequest{Room: "r", Candidates: []broker.Candidate{{Instance: "j-0", Incarnation: r.instance("j-0").Incarnation}}}); err != nil {
			t.Fatal(err)
		}
		r.sweep(4)
		if _, err := r.Lookup(t.Context(), "r", false); !errors.Is(err, broker.ErrRoomNotFound) {
			t.Errorf("lookup: %v; want not found", err)
		}
	})

	bubble(t, "a create that takes effect without an answer keeps its home", func(t *testing.T) {
		pool := newFakePool("j-0", "j-1")
		r := newRig(t, pool)
		pool.at("j-0", func(s *fakeServer) { s.late = true })
		_, _, err := r.CreateRoom(t.Context(), broker.CreateRequest{Room: "r"})
		if !errors.Is(err, broker.ErrUncertain) {
			t.Fatalf("create: %v; want uncertain", err)
		}
		pool.at("j-0", func(s *fakeServer) { s.late = false })
		if got := r.create("r"); got.Instance.Name != "j-0" {
			t.Errorf("the room is on %s; it was made on j-0", got.Instance.Name)
		}
		if d := cmp.Diff(pool.homes("r"), []string{"j-0"}); d != "" {
			t.Error(d)
		}
	})

	bubble(t, "a sweep alone finishes a create without an answer", func(t *testing.T) {
		pool := newFakePool("j-0")
		r := newRig(t, pool)
		pool.at("j-0", func(s *fakeServer) { s.late = true })
		_, _, _ = r.CreateRoom(t.Context(), broker.CreateRequest{Room: "r"})
		r.sweep(1)
		p, err := r.Lookup(t.Context(), "r", false)
		if err != nil || p.Pin.State != broker.Live {
			t.Errorf("pin %+v, %v; want live", p.Pin, err)
		}
	})

	bubble(t, "a refusing instance leaves nothing behind and another takes the room", func(t *testing.T) {
		pool := newFakePool("j-0", "j-1")
		r := newRig(t, pool)
		pool.at("j-0", func(s *fakeServer) { s.refuse = true })
		p, fresh, err := r.CreateRoom(t.Context(), broker.CreateRequest{Room: "r"})
		if err != nil || !fresh || p.Instance.Name != "j-1" {
			t.Errorf("on %s, fresh %v, %v; want fresh on j-1", p.Instance.Name, fresh, err)
		}
		if n := r.instance("j-0").Reserved; n != 0 {
			t.Errorf("%d participants are still reserved where the room was refused", n)
		}
	})

	bubble(t, "a room that was torn down before its create was answered is destroyed by the next sweep", func(t *testing.T) {
		pool := newFakePool("j-0")
		r := newRig(t, pool)
		pool.at("j-0", func(s *fakeServer) { s.late = true })
		_, _, _ = r.CreateRoom(t.Context(), broker.CreateRequest{Room: "r"})
		pool.at("j-0", func(s *fakeServer) { s.fault = broker.FaultTimeout })
		if err := r.DeleteRoom(t.Context(), "r", 0); err != nil {
			t.Fatal(err)
		}
		pool.at("j-0", func(s *fakeServer) { s.fault, s.late = "", false })
		r.sweep(1)
		if h := pool.homes("r"); len(h) != 0 {
			t.Errorf("the room is still on %v", h)
		}
	})

	bubble(t, "a room that was torn down while it was made is destroyed when its create is answered", func(t *testing.T) {
		pool := newFakePool("j-0")
		r := newRig(t, pool)
		pool.at("j-0", func(s *fakeServer) { s.slow = time.Second })
		done := make(chan broker.Placed)
		go func() {
			p, _, err := r.CreateRoom(t.Context(), broker.CreateRequest{Room: "r"})
			if err != nil {
				t.Error(err)
			}
			done <- p
		}()
		time.Sleep(time.Second / 2)
		if err := r.DeleteRoom(t.Context(), "r", 0); err != nil {
			t.Fatal(err)
		}
		p := <-done
		pool.at("j-0", func(s *fakeServer) {
			if len(s.rooms) != 1 || s.rooms[p.Pin.Epoch] == nil {
				t.Errorf("%d rooms on the server, its pin is of epoch %d; want that room alone", len(s.rooms), p.Pin.Epoch)
			}
		})
	})

	bubble(t, "creates, teardowns and sweeps at once end with every room at its pin and nowhere else", func(t *testing.T) {
		pool := newFakePool("j-0", "j-1", "j-2")
		a := newRig(t, pool)
		b := join(t, pool, a.store)
		b.sweep(1)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				s := []*rig{a, b}[i%2]
				for n := range 30 {
					room := fmt.Sprintf("r%d", (i/2+n)%5)
					if (i+n)%3 == 0 {
						_ = s.DeleteRoom(t.Context(), room, 0)
					} else {
						_, _, _ = s.CreateRoom(t.Context(), broker.CreateRequest{Room: room})
					}
					time.Sleep(time.Duration(1+(i*7+n*13)%40) * time.Millisecond)
				}
			})
			wg.Go(func() {
				for range 3 {
					[]*rig{a, b}[i%2].Sweep(t.Context())
					time.Sleep(300 * time.Millisecond)
				}
			})
		}
		wg.Wait()
		a.sweep(3)
		for i := range 5 {
			room := fmt.Sprintf("r%d", i)
			var want []string
			if p, err := a.Lookup(t.Context(), room, false); err == nil {
				want = []string{p.Instance.Name}
			}
			if d := cmp.Diff(pool.homes(room), want); d != "" {
				t.Errorf("%s: homes against pin: %s", room, d)
			}
		}
	})
}

func TestG2_DrainIsFinal(t *testing.T) {
	bubble(t, "no room lands on a marked instance, through any broker", func(t *testing.T) {
		pool := newFakePool("j-0", "j-1")
		a := newRig(t, pool)
		b := join(t, pool, a.store)
		b.sweep(1)
		b.create("warm") // b holds facts in which j-0 is free
		if _, err := a.Drain(t.Context(), "j-0", broker.MarkRequest{Owner: broker.OwnerHook}); err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			if p := b.create(fmt.Sprintf("r%d", i)); p.Instance.Name == "j-0" {
				t.Fatalf("%s was placed on the draining instance", p.Pin.Room)
			}
		}
	})

	bubble(t, "each owner's mark and clock is its own", func(t *testing.T) {
		pool := newFakePool("j-0", "j-1")
		r := newRig(t, pool)
		room := r.create("r")
		for i, o := range []broker.Owner{broker.OwnerOperator, broker.OwnerRollout, broker.OwnerHook, broker.OwnerScaler} {
			g := time.Duration(i) * 20 * time.Second // 0: none
			if _, err := r.Drain(t.Context(), room.Instance.Name, broker.MarkRequest{Owner: o, Grace: g}); err != nil {
				t.Fatal(err)
			}
		}
		// Repeating does not move a deadline.
		r.sweep(5)
		if _, err := r.Drain(t.Context(), room.Instance.Name, broker.MarkRequest{Owner: broker.OwnerRollout, Grace: time.Hour}); err != nil {
			t.Fatal(err)
		}
		want := map[broker.Owner]broker.DrainResult{broker.OwnerOperator: broker.DrainWaiting, broker.OwnerRollout: broker.DrainExpired, broker.OwnerHook: broker.DrainWaiting, broker.OwnerScaler: broker.DrainWaiting}
		for o, w := range want {
			st, err := r.DrainStatus(t.Context(), room.Instance.Name, o, 0)
			if err != nil || st.Result != w {
				t.Errorf("%s after 25s: %s, %v; want %s", o, st.Result, err, w)
			}
		}
		for _, o := range []broker.Owner{broker.OwnerScaler, broker.OwnerHook, broker.OwnerOperator} {
			if _, err := r.Uncordon(t.Context(), room.Instance.Name, o); err != nil {
				t.Fatal(err)
			}
			if got := r.instance(room.Instance.Name).State(); got != broker.StateCordoned {
				t.Errorf("%s after %s took its mark away; want cordoned", got, o)
			}
		}
		if _, err := r.Uncordon(t.Context(), room.Instance.Name, broker.OwnerRollout); err != nil {
			t.Fatal(err)
		}
		if got := r.instance(room.Instance.Name).State(); got != broker.StateReady {
			t.Errorf("%s without any mark; want ready", got)
		}
	})
}

func TestDrainStatus(t *testing.T) {
	bubble(t, "holds until the instance is empty", func(t *testing.T) {
		pool := newFakePool("j-0", "j-1")
		r := newRig(t, pool)
		p := r.create("r")
		pool.join(t, p, 2, 0)
		_, _ = r.Drain(t.Context(), p.Instance.Name, broker.MarkRequest{Owner: broker.OwnerHook})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go r.Run(ctx, nil)
		go func() {
			time.Sleep(20 * time.Second)
			pool.at(p.Instance.Name, func(s *fakeServer) { s.sessions = 0 })
			_ = r.DeleteRoom(ctx, "r", 0)
		}()
		begun := time.Now()
		st, err := r.DrainStatus(ctx, p.Instance.Name, broker.OwnerHook, time.Minute)
		if err != nil || st.Result != broker.DrainEmpty {
			t.Errorf("%s, %v; want empty", st.Result, err)
		}
		if d := time.Since(begun); d < 20*time.Second || d > 31*time.Second {
			t.Errorf("it held for %v", d)
		}
	})

	bubble(t, "a look from before the mark does not make it empty", func(t *testing.T) {
		r := newRig(t, newFakePool("j-0"))
		st, err := r.Drain(t.Context(), "j-0", broker.MarkRequest{Owner: broker.OwnerHook})
		if err != nil || st.Result != broker.DrainWaiting {
			t.Errorf("%s, %v; want waiting", st.Result, err)
		}
		r.sweep(1)
		if st, _ = r.DrainStatus(t.Context(), "j-0", broker.OwnerHook, 0); st.Result != broker.DrainEmpty {
			t.Errorf("%s after a sweep; want empty", st.Result)
		}
	})

	bubble(t, "an owner without a mark is told so", func(t *testing.T) {
		r := newRig(t, newFakePool("j-0"))
		if _, err := r.DrainStatus(t.Context(), "j-0", broker.OwnerHook, time.Minute); !errors.Is(err, broker.ErrMarkNotFound) {
			t.Error(err)
		}
	})
}

func TestCreateRoom(t *testing.T) {
	for _, p := range []broker.Placement{broker.LeastLoaded, broker.RoundRobin} {
		bubble(t, "a burst between two sweeps does not pile up, placement "+string(p), func(t *testing.T) {
			pool := newFakePool("j-0", "j-1", "j-2")
			a := newRig(t, pool, func(c *broker.Config) { c.Placement = p })
			b := join(t, pool, a.store)
			b.sweep(1)
			count := map[string]int{}
			var mu sync.Mutex
			var wg sync.WaitGroup
			for i := range 300 {
				wg.Go(func() {
					r := []*rig{a, b}[i%2].create(fmt.Sprintf("r%d", i))
					mu.Lock()
					defer mu.Unlock()
					count[r.Instance.Name]++
				})
			}
			wg.Wait()
			for n, c := range count {
				if c > 110 {
					t.Errorf("%s has %d of 300 rooms on 3 instances", n, c)
				}
			}
		})
	}

	bubble(t, "packed fills the lowest ordinal to the target and goes on", func(t *testing.T) {
		r := newRig(t, newFakePool("j-0", "j-1", "j-2"), func(c *broker.Config) { c.Placement, c.Target = broker.Packed, 10 })
		count := map[string]int{}
		for i := range 12 {
			count[r.create(fmt.Sprintf("r%d", i)).Instance.Name]++
		}
		if d := cmp.Diff(count, map[string]int{"j-0": 5, "j-1": 5, "j-2": 2}); d != "" {
			t.Error(d)
		}
	})

	bubble(t, "an instance that has just become free takes a room at once", func(t *testing.T) {
		r := newRig(t, newFakePool("j-0"))
		_, _ = r.Drain(t.Context(), "j-0", broker.MarkRequest{Owner: broker.OwnerOperator})
		if _, _, err := r.CreateRoom(t.Context(), broker.CreateRequest{Room: "r"}); !errors.Is(err, broker.ErrNoCapacity) {
			t.Fatal(err)
		}
		_, _ = r.Facts(t.Context())                                               // so that the cached facts know of the mark
		_, _ = r.store.Unmark(t.Context(), r.term(), "j-0", broker.OwnerOperator) // by another broker
		r.create("r")
	})

	bubble(t, "other settings than the room has are refused, none are not", func(t *testing.T) {
		pool := newFakePool("j-0")
		r := newRig(t, pool)
		six, seven := map[string]any{"publishers": 6.0}, map[string]any{"publishers": 7.0}
		pool.at("j-0", func(s *fakeServer) { s.fault = broker.FaultTimeout })
		_, _, _ = r.CreateRoom(t.Context(), broker.CreateRequest{Room: "r", Settings: six})
		if _, _, err := r.CreateRoom(t.Context(), broker.CreateRequest{Room: "r"}); !errors.Is(err, broker.ErrBusy) {
			t.Errorf("a caller without the settings, before the room is made: %v; want busy", err)
		}
		pool.at("j-0", func(s *fakeServer) { s.fault = "" })
		for _, c := range []struct {
			settings map[string]any
			want     error
		}{{seven, broker.ErrSettingsDiffer}, {six, nil}, {nil, nil}} {
			if _, _, err := r.CreateRoom(t.Context(), broker.CreateRequest{Room: "r", Settings: c.settings}); !errors.Is(err, c.want) {
				t.Errorf("%v: %v; want %v", c.settings, err, c.want)
			}
		}
	})

	bubble(t, "no instance takes more than max-sessions; what is refused is counted as demand", func(t *testing.T) {
		r := newRig(t, newFakePool("j-0"), func(c *broker.Config) { c.MaxSessions = 5 })
		r.create("a")
		r.create("b")
		_, _, err := r.CreateRoom(t.Context(), broker.CreateRequest{Room: "c"})
		if !errors.Is(err, broker.ErrNoCapacity) {
			t.Errorf("%v; want no capacity", err)
		}
		_, _, err = r.CreateRoom(t.Context(), broker.CreateRequest{Room: "d", Expected: 6})
		if !errors.Is(err, broker.ErrNeverFits) {
			t.Errorf("%v; want never fits", err)
		}
		f, _ := r.Facts(t.Context())
		if d := cmp.Diff(f.Demand, broker.Demand{Rooms: 1, Participants: 2}); d != "" {
			t.Error(d)
		}
	})

	bubble(t, "a room for more people than can be counted is refused, and the pool stays readable", func(t *testing.T) {
		r := newRig(t, newFakePool("j-0"))
		for _, expected := range []int{broker.MaxParticipants + 1, math.MaxInt} {
			_, _, err := r.CreateRoom(t.Context(), broker.CreateRequest{Room: "a", Expected: expected})
			if wrong, ok := errors.AsType[*broker.InvalidError](err); !ok || wrong.Field != "expected_participants" {
				t.Errorf("%d: %v; want expected_participants refused", expected, err)
			}
		}
		f, _ := r.Facts(t.Context())
		if f.Demand.Rooms != 0 || r.instance("j-0").Reserved != 0 {
			t.Errorf("demand %+v, %d reserved; want none", f.Demand, r.instance("j-0").Reserved)
		}
	})

	bubble(t, "an expected participant who has come is not reckoned twice", func(t *testing.T) {
		pool := newFakePool("j-0")
		r := newRig(t, pool)
		p, _, err := r.CreateRoom(t.Context(), broker.CreateRequest{Room: "r", Expected: 10})
		if err != nil {
			t.Fatal(err)
		}
		pool.join(t, p, 4, 0)
		r.sweep(1)
		if in := r.instance("j-0"); in.Sessions != 4 || in.Reserved != 6 {
			t.Errorf("%d sessions and %d reserved; want 4 and 6", in.Sessions, in.Reserved)
		}
	})
}
