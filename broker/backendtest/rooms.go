package backendtest

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/broker"
)

func (b *bench) inspect(t *testing.T, r broker.RoomSpec) broker.Occupancy {
	t.Helper()
	o, err := b.Backend.Inspect(t.Context(), b.at(t), ref(r))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func testCreate(t *testing.T, s *Server) {
	b := &bench{Server: s}
	t.Run("fifty creates of one room at once all succeed and leave one", func(t *testing.T) {
		r, at := b.spec("many"), b.at(t)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if err := b.Backend.Create(t.Context(), at, r); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		n := 0
		for _, seen := range b.look(t, false).Rooms {
			if seen.Room == r.Room {
				n++
			}
		}
		if n != 1 {
			t.Errorf("it is there %d times", n)
		}
	})
	t.Run("a create of a room that people are in disturbs nobody", func(t *testing.T) {
		r := b.spec("again")
		b.make(t, r)
		defer b.Join(t, b.at(t), r)()
		b.make(t, r)
		if got := b.inspect(t, r); got.Publishers != 1 {
			t.Errorf("%d in it after a second create, want 1", got.Publishers)
		}
	})
	t.Run("an id that another room has is refused", func(t *testing.T) {
		r := b.spec("first")
		b.make(t, r)
		other := r
		other.Room = "second"
		wantFault(t, b.Backend.Create(t.Context(), b.at(t), other), broker.ErrRefused)
		if _, there := seen(b.look(t, false), r.Room); !there {
			t.Error("the first room is not there any more")
		}
	})
}

func testDestroy(t *testing.T, s *Server) {
	b := &bench{Server: s}
	destroy := func(t *testing.T, r broker.RoomSpec, vacant bool) error {
		t.Helper()
		return b.Backend.Destroy(t.Context(), b.at(t), ref(r), broker.DestroyOptions{OnlyVacant: vacant})
	}
	t.Run("a room that is not there is success", func(t *testing.T) {
		for _, vacant := range []bool{false, true} {
			if err := destroy(t, b.spec("never"), vacant); err != nil {
				t.Errorf("OnlyVacant %v: %v", vacant, err)
			}
		}
	})
	t.Run("everybody's session ends with the room, viewers' included", func(t *testing.T) {
		r, other := b.spec("full"), b.spec("other")
		r.Settings = b.Watchable
		b.make(t, r)
		b.make(t, other)
		b.Join(t, b.at(t), r)
		b.Watch(t, b.at(t), r)
		defer b.Join(t, b.at(t), other)()
		if err := destroy(t, r, false); err != nil {
			t.Fatal(err)
		}
		if l := b.look(t, true); l.Sessions != 1 || l.Handles != 1 {
			t.Errorf("%d sessions and %d handles are left; want that of the other room alone", l.Sessions, l.Handles)
		}
		if got := b.inspect(t, other); got.Publishers != 1 {
			t.Error("the other room lost its participant")
		}
		if err := destroy(t, r, false); err != nil {
			t.Errorf("a second time: %v", err)
		}
	})
	t.Run("a viewer's session ends with a room in which nobody sends", func(t *testing.T) {
		r := b.spec("left alone")
		r.Settings = b.Watchable
		b.make(t, r)
		b.Watch(t, b.at(t), r)
		if err := destroy(t, r, false); err != nil {
			t.Fatal(err)
		}
		if l := b.look(t, true); l.Sessions != 0 || l.Handles != 0 {
			t.Errorf("%d sessions and %d handles are left", l.Sessions, l.Handles)
		}
	})
	t.Run("a room with somebody in it is not vacant", func(t *testing.T) {
		for name, enter := range map[string]func(*testing.T, broker.Target, broker.RoomSpec) func(){"who may send": b.Join, "who watches": b.Watch} {
			r := b.spec("occupied by one " + name)
			r.Settings = b.Watchable
			b.make(t, r)
			leave := enter(t, b.at(t), r)
			wantFault(t, destroy(t, r, true), broker.ErrRefused)
			if got := b.inspect(t, r); !got.Exists || got.Publishers+got.Viewers != 1 {
				t.Errorf("%s: afterwards %+v", name, got)
			}
			leave()
			if err := destroy(t, r, true); err != nil {
				t.Errorf("%s: after leaving: %v", name, err)
			}
			if b.inspect(t, r).Exists {
				t.Errorf("%s: the room is still there", name)
			}
		}
	})
	t.Run("a room of that id and another name stays", func(t *testing.T) {
		r := b.spec("mine")
		b.make(t, r)
		other := r
		other.Room = "yours"
		wantFault(t, destroy(t, other, false), broker.ErrRefused)
		if !b.inspect(t, r).Exists {
			t.Error("it is gone")
		}
	})
}

func testInspect(t *testing.T, s *Server) {
	b := &bench{Server: s}
	r := b.spec("inspected")
	r.Settings = b.Watchable
	check := func(t *testing.T, want broker.Occupancy) {
		t.Helper()
		if diff := cmp.Diff(want, b.inspect(t, r)); diff != "" {
			t.Error(diff)
		}
	}
	t.Run("a room that is not there does not exist", func(t *testing.T) { check(t, broker.Occupancy{}) })
	b.make(t, r)
	t.Run("an empty room has nobody in it", func(t *testing.T) { check(t, broker.Occupancy{Exists: true}) })
	leaveJoined := b.Join(t, b.at(t), r)
	leaveWatching := b.Watch(t, b.at(t), r)
	t.Run("both kinds of people are counted", func(t *testing.T) {
		check(t, broker.Occupancy{Exists: true, Publishers: 1, Viewers: 1})
	})
	leaveJoined()
	t.Run("a viewer left alone is somebody", func(t *testing.T) {
		check(t, broker.Occupancy{Exists: true, Viewers: 1})
	})
	leaveWatching()
	t.Run("who has left is not there", func(t *testing.T) { check(t, broker.Occupancy{Exists: true}) })
}
