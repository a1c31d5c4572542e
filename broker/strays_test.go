package broker_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/roomscaler/roomscaler/broker"
)

// copyRoom puts a room with the mark of one that stands on another server on a server.
func (p *fakePool) copyRoom(from, to string, e broker.Epoch, publishers int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.servers[to].rooms[e] = &fakeRoom{RoomMark: p.servers[from].rooms[e].RoomMark, publishers: publishers}
}

func TestG6_StraysTakeNoRoomsHome(t *testing.T) {
	bubble(t, "a copy of a room's mark on another server is not adopted, though it is seen first", func(t *testing.T) {
		pool := newFakePool("j-0", "j-1")
		r := newRig(t, pool)
		p := r.create("r")
		home, other := p.Instance.Name, "j-1"
		if home == other {
			other = "j-0"
		}
		pool.join(t, p, 1, 0)
		pool.copyRoom(home, other, p.Pin.Epoch, 1)
		pool.at(home, func(s *fakeServer) { s.fault = broker.FaultTimeout })
		r.store.flush()
		late := join(t, pool, r.store) // remembers nothing
		late.sweep(4)
		if q, err := late.Lookup(t.Context(), "r", false); !errors.Is(err, broker.ErrRebuilding) {
			t.Errorf("found on %s (%v) while its home is silent; want rebuilding", q.Instance.Name, err)
		}
		pool.at(home, func(s *fakeServer) { s.fault = "" })
		late.ready()
		if q, err := late.Lookup(t.Context(), "r", false); err != nil || q.Instance.Name != home {
			t.Errorf("found on %s (%v); want %s", q.Instance.Name, err, home)
		}
		if len(pool.homes("r")) != 2 || late.ev.count(broker.RoomConflict) == 0 {
			t.Errorf("homes %v, %d conflicts; want a copy that is told of and left alone", pool.homes("r"), late.ev.count(broker.RoomConflict))
		}
	})

	bubble(t, "a room that was made at another instance's address is taken away when nobody is in it", func(t *testing.T) {
		pool := newFakePool("j-0", "j-1")
		r := newRig(t, pool)
		p := r.create("r")
		home, other := p.Instance.Name, "j-1"
		if home == other {
			other = "j-0"
		}
		pool.copyRoom(home, other, p.Pin.Epoch, 0)
		pool.at(home, func(s *fakeServer) { delete(s.rooms, p.Pin.Epoch) })
		r.sweep(1)
		if d := cmp.Diff(pool.homes("r"), []string(nil)); d != "" {
			t.Error(d)
		}
		if _, err := r.Lookup(t.Context(), "r", false); !errors.Is(err, broker.ErrRoomNotFound) {
			t.Errorf("lookup: %v; want not found", err)
		}
	})
}

func TestSweep_ALookCountsThoughWhatFollowsTakesAllTheTime(t *testing.T) {
	bubble(t, "questions by name that are held keep no look from being recorded", func(t *testing.T) {
		pool := newFakePool("j-0")
		r := newRig(t, pool)
		r.create("r")
		pool.at("j-0", func(s *fakeServer) { s.hide, s.stuck = true, true })
		before := r.instance("j-0").LookBegin
		time.Sleep(time.Second)
		r.sweep(2)
		if in := r.instance("j-0"); in.LookBegin <= before || in.Fault != "" {
			t.Errorf("last look at %d (%q), before %d; want a later one", in.LookBegin, in.Fault, before)
		}
	})
}
