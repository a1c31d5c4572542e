package broker_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/roomscaler/roomscaler/broker"
)

func TestG4_UnknownIsNotZero(t *testing.T) {
	bubble(t, "a hung instance keeps its facts, their age and its rooms, and becomes suspect", func(t *testing.T) {
		pool := newFakePool("j-0", "j-1")
		r := newRig(t, pool)
		p := r.create("r")
		pool.join(t, p, 3, 0)
		r.sweep(1)
		name := p.Instance.Name
		seen := r.instance(name).LookBegin
		pool.at(name, func(s *fakeServer) { s.fault = broker.FaultTimeout })
		r.sweep(10)
		in := r.instance(name)
		if in.Sessions != 3 || in.Pins != 1 || in.LookBegin != seen || in.EmptySince != broker.Never {
			t.Errorf("%+v; want the facts of the last good look", in)
		}
		if in.State() != broker.StateSuspect || in.Fault != broker.FaultTimeout {
			t.Errorf("%s, fault %q; want suspect, timeout", in.State(), in.Fault)
		}
		if _, err := r.Lookup(t.Context(), "r", false); err != nil {
			t.Errorf("lookup of its room: %v", err)
		}
		pool.at(name, func(s *fakeServer) { s.fault = "" })
		r.sweep(2)
		if got := r.instance(name).State(); got != broker.StateReady {
			t.Errorf("%s after it answers again; want ready", got)
		}
	})

	bubble(t, "an instance that comes and goes must answer for longer each time", func(t *testing.T) {
		pool := newFakePool("j-0")
		r := newRig(t, pool)
		sweeps := func() (n int) {
			pool.at("j-0", func(s *fakeServer) { s.fault = broker.FaultRefused })
			r.sweep(4)
			pool.at("j-0", func(s *fakeServer) { s.fault = "" })
			for r.instance("j-0").State() != broker.StateReady && n < 50 {
				r.sweep(1)
				n++
			}
			return n
		}
		first, second, third := sweeps(), sweeps(), sweeps()
		if first >= second || second >= third {
			t.Errorf("it was trusted again after %d, %d, %d good sweeps", first, second, third)
		}
	})

	bubble(t, "a finder that cannot tell changes nothing", func(t *testing.T) {
		pool := newFakePool("j-0")
		r := newRig(t, pool, func(c *broker.Config) { c.LostAfter = 20 * time.Second })
		r.create("r")
		pool.mu.Lock()
		pool.findErr = errors.New("no answer")
		pool.mu.Unlock()
		pool.at("j-0", func(s *fakeServer) { s.fault = broker.FaultTimeout })
		for range 12 {
			time.Sleep(5 * time.Second)
			r.Sweep(t.Context())
		}
		if in := r.instance("j-0"); in.Lost || in.Pins != 1 {
			t.Errorf("lost %v with %d pins after a minute without the finder", in.Lost, in.Pins)
		}
	})

	bubble(t, "a room left out of a list is asked for by name before its pin goes", func(t *testing.T) {
		pool := newFakePool("j-0")
		r := newRig(t, pool)
		r.create("r")
		pool.at("j-0", func(s *fakeServer) { s.hide = true })
		r.sweep(3)
		if _, err := r.Lookup(t.Context(), "r", false); err != nil {
			t.Errorf("lookup: %v", err)
		}
		pool.at("j-0", func(s *fakeServer) { s.mute = true })
		r.sweep(3)
		if _, err := r.Lookup(t.Context(), "r", false); err != nil {
			t.Errorf("lookup while the question by name is not answered: %v", err)
		}
		pool.at("j-0", func(s *fakeServer) { s.mute = false; clear(s.rooms) })
		r.sweep(2)
		if _, err := r.Lookup(t.Context(), "r", false); !errors.Is(err, broker.ErrRoomNotFound) {
			t.Errorf("lookup of a room that is gone: %v", err)
		}
	})

	for _, c := range []struct {
		when broker.EmptyWhen
		why  string
		busy func(*fakeServer)
	}{
		{broker.EmptySessions, "a session is left", func(s *fakeServer) { s.sessions = 1 }},
		{broker.EmptyRooms, "a viewer is left in a room that is not ours", func(s *fakeServer) { s.sessions, s.others = 1, 1 }},
	} {
		bubble(t, "an instance without pins is not empty while "+c.why, func(t *testing.T) {
			pool := newFakePool("j-0")
			r := newRig(t, pool, func(cfg *broker.Config) { cfg.EmptyWhen = c.when })
			pool.at("j-0", c.busy)
			_, _ = r.Drain(t.Context(), "j-0", broker.MarkRequest{Owner: broker.OwnerHook})
			r.sweep(2)
			if st, _ := r.DrainStatus(t.Context(), "j-0", broker.OwnerHook, 0); st.Result != broker.DrainWaiting || st.Instance.EmptySince != broker.Never {
				t.Errorf("%s, empty since %d", st.Result, st.Instance.EmptySince)
			}
			pool.at("j-0", func(s *fakeServer) { s.sessions, s.others = 0, 0 })
			r.sweep(1)
			if st, _ := r.DrainStatus(t.Context(), "j-0", broker.OwnerHook, 0); st.Result != broker.DrainEmpty {
				t.Errorf("%s once nobody is left", st.Result)
			}
		})
	}

	bubble(t, "idle sessions alone do not keep an instance that is to be empty of rooms", func(t *testing.T) {
		pool := newFakePool("j-0")
		r := newRig(t, pool, func(cfg *broker.Config) { cfg.EmptyWhen = broker.EmptyRooms })
		pool.at("j-0", func(s *fakeServer) { s.sessions = 3 })
		_, _ = r.Drain(t.Context(), "j-0", broker.MarkRequest{Owner: broker.OwnerHook})
		r.sweep(1)
		if st, _ := r.DrainStatus(t.Context(), "j-0", broker.OwnerHook, 0); st.Result != broker.DrainEmpty {
			t.Errorf("%s", st.Result)
		}
	})

	bubble(t, "an instance that stops answering is not empty any more", func(t *testing.T) {
		pool := newFakePool("j-0")
		r := newRig(t, pool)
		_, _ = r.Drain(t.Context(), "j-0", broker.MarkRequest{Owner: broker.OwnerHook})
		r.sweep(1)
		pool.at("j-0", func(s *fakeServer) { s.fault = broker.FaultTimeout })
		r.sweep(1)
		if st, _ := r.DrainStatus(t.Context(), "j-0", broker.OwnerHook, 0); st.Result != broker.DrainWaiting {
			t.Errorf("%s by a look that is out of date", st.Result)
		}
	})

	bubble(t, "a look at another instance's server is thrown away", func(t *testing.T) {
		pool := newFakePool("j-0", "j-1")
		r := newRig(t, pool)
		p := r.create("r")
		other := map[string]string{"j-0": "j-1", "j-1": "j-0"}[p.Instance.Name]
		pool.mu.Lock()
		pool.servers[p.Instance.Name] = pool.servers[other] // a reused address
		pool.mu.Unlock()
		r.sweep(1)
		in := r.instance(p.Instance.Name)
		if in.Fault != broker.FaultStranger || in.Pins != 1 {
			t.Errorf("fault %q, %d pins; want other_instance and the pin as it was", in.Fault, in.Pins)
		}
	})
}

func TestEvents(t *testing.T) {
	bubble(t, "a fault is told when it comes, when it changes, and when it has gone, and not at each look", func(t *testing.T) {
		pool := newFakePool("j-0")
		pool.at("j-0", func(s *fakeServer) { s.fault = broker.FaultUnauthorized })
		r := join(t, pool, &flaky{Store: newStore()})
		r.sweep(3)
		_, _, err := r.CreateRoom(t.Context(), broker.CreateRequest{Room: "r"})
		var waits *broker.RebuildingError
		if !errors.As(err, &waits) || waits.Waiting != "j-0 (unauthorized)" {
			t.Errorf("a create meanwhile: %v", err)
		}
		pool.at("j-0", func(s *fakeServer) { s.fault = broker.FaultTimeout })
		r.sweep(2)
		pool.at("j-0", func(s *fakeServer) { s.fault = "" })
		r.sweep(2)
		if f, a := r.ev.count(broker.InstanceFault), r.ev.count(broker.InstanceAnswers); f != 2 || a != 1 {
			t.Errorf("%d faults and %d recoveries were told, want 2 and 1: %+v", f, a, r.ev.list)
		}
	})
}

func TestEvents_finder(t *testing.T) {
	bubble(t, "a list that has become empty is told once", func(t *testing.T) {
		pool := newFakePool("j-0")
		r := newRig(t, pool)
		for range 2 {
			pool.mu.Lock()
			pool.hidden["j-0"] = true
			pool.mu.Unlock()
			r.sweep(2)
			pool.mu.Lock()
			pool.hidden["j-0"] = false
			pool.mu.Unlock()
			r.sweep(1)
		}
		if n := r.ev.count(broker.FinderEmpty); n != 2 {
			t.Errorf("told %d times, want 2", n)
		}
	})
}

func TestIncarnation(t *testing.T) {
	bubble(t, "a restarted server is a new life: its pins end, its marks go", func(t *testing.T) {
		pool := newFakePool("j-0")
		r := newRig(t, pool)
		r.create("r")
		_, _ = r.Drain(t.Context(), "j-0", broker.MarkRequest{Owner: broker.OwnerOperator})
		old := r.instance("j-0").Incarnation
		pool.restart("j-0")
		r.sweep(1)
		in := r.instance("j-0")
		if in.Incarnation == old || in.Pins != 0 || in.State() != broker.StateReady {
			t.Errorf("%+v; want a new, empty, ready life", in)
		}
		if r.ev.count(broker.InstanceReborn) != 1 || r.ev.count(broker.RoomEnded) != 1 {
			t.Errorf("events: %+v", r.ev.list)
		}
		r.create("r") // and takes rooms again
	})

	bubble(t, "two brokers agree on the name of a new life", func(t *testing.T) {
		pool := newFakePool("j-0")
		a := newRig(t, pool)
		b := join(t, pool, a.store)
		b.sweep(1)
		a.create("r")
		pool.restart("j-0")
		done := make(chan struct{})
		go func() { b.Sweep(t.Context()); close(done) }()
		a.Sweep(t.Context())
		<-done
		a.sweep(1)
		b.sweep(1)
		var planted string
		pool.at("j-0", func(s *fakeServer) { planted = s.marker.Incarnation })
		if in := a.instance("j-0"); in.Incarnation != planted || in.Fault != "" {
			t.Errorf("recorded %q, planted %q, fault %q", in.Incarnation, planted, in.Fault)
		}
	})

	bubble(t, "a marker that alone is gone is planted again", func(t *testing.T) {
		pool := newFakePool("j-0")
		r := newRig(t, pool)
		r.create("r")
		old := r.instance("j-0").Incarnation
		pool.at("j-0", func(s *fakeServer) { s.marker = nil })
		r.sweep(1)
		pool.at("j-0", func(s *fakeServer) {
			if s.marker == nil || s.marker.Incarnation != old {
				t.Errorf("marker %+v; want %q again", s.marker, old)
			}
		})
		if _, err := r.Lookup(t.Context(), "r", false); err != nil {
			t.Error(err)
		}
	})
}

func TestExpiry(t *testing.T) {
	short := func(c *broker.Config) { c.RoomTTL = 3 * time.Minute }
	bubble(t, "a room that nobody asks for and nobody is in ends", func(t *testing.T) {
		pool := newFakePool("j-0")
		r := newRig(t, pool, short)
		r.create("r")
		r.sweep(35)
		if _, err := r.Lookup(t.Context(), "r", false); err != nil {
			t.Fatalf("before its time: %v", err)
		}
		r.sweep(3)
		if _, err := r.Lookup(t.Context(), "r", false); !errors.Is(err, broker.ErrRoomNotFound) || len(pool.homes("r")) != 0 {
			t.Errorf("after its time: %v, on %v", err, pool.homes("r"))
		}
	})

	for _, c := range []struct {
		name                string
		publishers, viewers int
	}{{"never with somebody who may send in it", 1, 0}, {"never with only a viewer in it", 0, 1}} {
		bubble(t, c.name, func(t *testing.T) {
			pool := newFakePool("j-0")
			r := newRig(t, pool, short)
			p := r.create("r")
			pool.join(t, p, c.publishers, c.viewers)
			r.sweep(100)
			if d := cmp.Diff(pool.homes("r"), []string{"j-0"}); d != "" {
				t.Error(d)
			}
		})
	}

	bubble(t, "a room stays while a ghost of who has just left may be somebody", func(t *testing.T) {
		pool := newFakePool("j-0")
		r := newRig(t, pool, short)
		p := r.create("r")
		pool.join(t, p, 1, 0)
		r.sweep(60)
		pool.at("j-0", func(s *fakeServer) { s.sessions = 0; s.rooms[p.Pin.Epoch].publishers = 0 })
		r.sweep(12)
		if h := pool.homes("r"); len(h) != 1 {
			t.Fatal("the room ended within a minute of its last person")
		}
		r.sweep(4)
		if h := pool.homes("r"); len(h) != 0 {
			t.Error("the room is still there")
		}
	})

	bubble(t, "a lookup keeps a room", func(t *testing.T) {
		r := newRig(t, newFakePool("j-0"), short)
		r.create("r")
		for range 10 {
			r.sweep(20)
			if _, err := r.Lookup(t.Context(), "r", true); err != nil {
				t.Fatal(err)
			}
		}
	})

	bubble(t, "sessions elsewhere on the server do not keep a room", func(t *testing.T) {
		pool := newFakePool("j-0")
		r := newRig(t, pool, short)
		r.create("r")
		pool.at("j-0", func(s *fakeServer) { s.sessions = 5 })
		r.sweep(60)
		if h := pool.homes("r"); len(h) != 0 {
			t.Errorf("still on %v", h)
		}
	})

	bubble(t, "a clock that jumps ends nothing early", func(t *testing.T) {
		pool := newFakePool("j-0")
		r := newRig(t, pool, short)
		r.create("r")
		time.Sleep(24 * time.Hour) // no broker runs
		r.sweep(3)
		if _, err := r.Lookup(t.Context(), "r", false); err != nil {
			t.Error(err)
		}
	})
}

func TestLost(t *testing.T) {
	bubble(t, "an instance that no finder lists and that does not answer is fenced, then forgotten", func(t *testing.T) {
		pool := newFakePool("j-0", "j-1")
		r := newRig(t, pool, func(c *broker.Config) { c.LostAfter = time.Minute })
		p := r.create("r")
		pool.mu.Lock()
		pool.hidden[p.Instance.Name] = true
		pool.mu.Unlock()
		pool.at(p.Instance.Name, func(s *fakeServer) { s.fault = broker.FaultUnreachable })
		r.sweep(11)
		if _, err := r.Lookup(t.Context(), "r", false); err != nil {
			t.Fatalf("before its time: %v", err)
		}
		r.sweep(5)
		if _, err := r.Lookup(t.Context(), "r", false); !errors.Is(err, broker.ErrRoomNotFound) {
			t.Errorf("lookup: %v", err)
		}
		if _, _, err := r.Instance(t.Context(), p.Instance.Name); !errors.Is(err, broker.ErrInstanceNotFound) {
			t.Errorf("instance: %v; want forgotten", err)
		}
	})

	bubble(t, "an instance that no finder lists but that answers stays, with its rooms", func(t *testing.T) {
		pool := newFakePool("j-0")
		r := newRig(t, pool, func(c *broker.Config) { c.LostAfter = time.Minute })
		r.create("r")
		pool.mu.Lock()
		pool.hidden["j-0"] = true
		pool.mu.Unlock()
		r.sweep(40)
		if in := r.instance("j-0"); in.Lost || in.Pins != 1 {
			t.Errorf("%+v", in)
		}
	})

	bubble(t, "a fenced instance that comes back with people stays fenced; their room is left alone and reported", func(t *testing.T) {
		pool := newFakePool("j-0", "j-1")
		r := newRig(t, pool)
		p := r.create("r")
		pool.join(t, p, 1, 0)
		ended, err := r.Lost(t.Context(), p.Instance.Name, "")
		if err != nil || len(ended) != 1 {
			t.Fatalf("%d ended, %v", len(ended), err)
		}
		q := r.create("r")
		if q.Instance.Name == p.Instance.Name {
			t.Fatal("placed on the fenced instance")
		}
		r.sweep(3)
		if len(pool.homes("r")) != 2 || r.ev.count(broker.RoomConflict) == 0 || r.instance(p.Instance.Name).State() != broker.StateLost {
			t.Errorf("homes %v, %d conflicts, %s", pool.homes("r"), r.ev.count(broker.RoomConflict), r.instance(p.Instance.Name).State())
		}
		pool.at(p.Instance.Name, func(s *fakeServer) { s.sessions = 0; s.rooms[p.Pin.Epoch].publishers = 0 })
		r.sweep(4)
		if d := cmp.Diff(pool.homes("r"), []string{q.Instance.Name}); d != "" {
			t.Error(d)
		}
		if got := r.instance(p.Instance.Name).State(); got != broker.StateReady {
			t.Errorf("%s once it is empty; want ready", got)
		}
	})
}

func TestSweep(t *testing.T) {
	bubble(t, "1,000 instances with 10 hung take the instance timeout and no more", func(t *testing.T) {
		names := make([]string, 1000)
		for i := range names {
			names[i] = fmt.Sprintf("j-%d", i)
		}
		pool := newFakePool(names...)
		r := newRig(t, pool)
		for i := range 10 {
			pool.at(fmt.Sprintf("j-%d", i*100), func(s *fakeServer) { s.fault = broker.FaultTimeout })
		}
		rep := r.Sweep(t.Context())
		if rep.Good != 990 || rep.Failed[broker.FaultTimeout] != 10 || rep.Took > r.Config().InstanceTimeout {
			t.Errorf("%+v", rep)
		}
	})
}
