package backendtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/broker"
)

// Server is a real media server of a test's own, with nobody in it, and a backend that reaches it.
type Server struct {
	Backend broker.Backend
	Target  broker.Target // Pool, Instance and Address; the suite takes StringIDs from Look

	// Join brings in somebody who may send, Watch one who only watches, in a session of its own. Both return once the server
	// knows of it. The returned function ends that session.
	Join, Watch func(t *testing.T, at broker.Target, room broker.RoomSpec) (leave func())
	// Watchable are settings of a room in which Watch can work although nobody sends.
	Watchable map[string]any

	Restart func(t *testing.T) // a new life at the same address
	Stop    func(t *testing.T) // nothing listens there any more

	// Faults stands between Backend and the server; Creates and Destroys recognise the request that makes or ends a room.
	Faults            *Faulty
	Creates, Destroys func(path string, body []byte) bool
}

// Run runs the suite; open makes a server for as long as t runs.
func Run(t *testing.T, open func(t *testing.T) *Server) {
	t.Run("Plant", func(t *testing.T) { testPlant(t, open) })
	t.Run("Look", func(t *testing.T) { testLook(t, open(t)) })
	t.Run("Create", func(t *testing.T) { testCreate(t, open(t)) })
	t.Run("Destroy", func(t *testing.T) { testDestroy(t, open(t)) })
	t.Run("Inspect", func(t *testing.T) { testInspect(t, open(t)) })
	t.Run("Faults", func(t *testing.T) { testFaults(t, open) })
}

// hangFor is how long a call that hangs is waited for.
const hangFor = 300 * time.Millisecond

// epochs never repeat within a process, as they never do within a pool.
type epochs struct{ last atomic.Int64 }

func (e *epochs) next() broker.Epoch {
	return broker.Epoch(1_700_000_000_000_000 + e.last.Add(1))
}

// bench is what the tests of one server share.
type bench struct {
	*Server
	epochs epochs
}

func (b *bench) at(t *testing.T) broker.Target {
	t.Helper()
	look, err := b.Backend.Look(t.Context(), b.Target, broker.LookOptions{})
	if err != nil {
		t.Fatal(err)
	}
	at := b.Target
	at.StringIDs = look.StringIDs
	return at
}

func (b *bench) spec(name string) broker.RoomSpec {
	return broker.RoomSpec{RoomMark: broker.RoomMark{Pool: b.Target.Pool, Room: name, Epoch: b.epochs.next(), Expected: 4}}
}

func ref(r broker.RoomSpec) broker.RoomRef { return broker.RoomRef{Room: r.Room, Epoch: r.Epoch} }

func (b *bench) make(t *testing.T, r broker.RoomSpec) {
	t.Helper()
	if err := b.Backend.Create(t.Context(), b.at(t), r); err != nil {
		t.Fatalf("create %s: %v", r.Room, err)
	}
}

func (b *bench) look(t *testing.T, viewers bool) broker.Look {
	t.Helper()
	look, err := b.Backend.Look(t.Context(), b.Target, broker.LookOptions{Viewers: viewers})
	if err != nil {
		t.Fatal(err)
	}
	return look
}

func seen(l broker.Look, room string) (broker.RoomSeen, bool) {
	for _, r := range l.Rooms {
		if r.Room == room {
			return r, true
		}
	}
	return broker.RoomSeen{}, false
}

// wantFault checks that err is a fault that says whether there was an effect, and which.
func wantFault(t *testing.T, err error, certainty error) *broker.FaultError {
	t.Helper()
	var f *broker.FaultError
	if !errors.As(err, &f) {
		t.Fatalf("got %v, want a *broker.FaultError", err)
	}
	if errors.Is(err, broker.ErrRefused) == errors.Is(err, broker.ErrUncertain) {
		t.Errorf("%v wraps not exactly one of ErrRefused and ErrUncertain", err)
	}
	if !errors.Is(err, certainty) {
		t.Errorf("got %v, want it to wrap %q", err, certainty)
	}
	return f
}

func testPlant(t *testing.T, open func(*testing.T) *Server) {
	b := &bench{Server: open(t)}
	t.Run("a fresh server has no marker", func(t *testing.T) {
		if m := b.look(t, false).Marker; m != nil {
			t.Errorf("got %+v", *m)
		}
	})
	t.Run("of many plants at once one stands and all return it", func(t *testing.T) {
		at := b.at(t)
		got := make([]string, 10)
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() {
				n, err := b.Backend.Plant(t.Context(), at, fmt.Sprintf("life-%d", i))
				if err != nil {
					t.Error(err)
				}
				got[i] = n
			})
		}
		wg.Wait()
		look := b.look(t, false)
		if look.Marker == nil {
			t.Fatal("no marker stands there")
		}
		want := broker.InstanceMark{Pool: at.Pool, Instance: at.Instance, Incarnation: look.Marker.Incarnation}
		if diff := cmp.Diff(want, *look.Marker); diff != "" {
			t.Error(diff)
		}
		for i, n := range got {
			if n != look.Marker.Incarnation {
				t.Errorf("plant %d returned %q, the marker says %q", i, n, look.Marker.Incarnation)
			}
		}
	})
	t.Run("the marker is no room, ours or other", func(t *testing.T) {
		if l := b.look(t, false); len(l.Rooms) != 0 || l.OtherRooms != 0 {
			t.Errorf("%d of our rooms and %d others, want none", len(l.Rooms), l.OtherRooms)
		}
	})
	t.Run("a plant for another instance is refused", func(t *testing.T) {
		at := b.at(t)
		at.Instance = "someone-else-0"
		_, err := b.Backend.Plant(t.Context(), at, "x")
		if f := wantFault(t, err, broker.ErrRefused); f.Fault != broker.FaultStranger {
			t.Errorf("fault %q, want %q", f.Fault, broker.FaultStranger)
		}
	})
	t.Run("a new life has neither the marker nor the rooms of the one before", func(t *testing.T) {
		b.make(t, b.spec("before"))
		b.Restart(t)
		if l := b.look(t, false); l.Marker != nil || len(l.Rooms) != 0 {
			t.Errorf("marker %v and %d rooms", l.Marker, len(l.Rooms))
		}
		if n, err := b.Backend.Plant(t.Context(), b.at(t), "second"); err != nil || n != "second" {
			t.Errorf("plant returned %q, %v", n, err)
		}
	})
}

func testLook(t *testing.T, s *Server) {
	b := &bench{Server: s}
	t.Run("a room is seen with all that its mark says", func(t *testing.T) {
		r := b.spec("Grüße \"1\"/2 \u2028 \\ 日本")
		r.Settings, r.Labels = nil, map[string]string{"team": "é<&>", "": "x"}
		r.RoomMark.Settings = "5e77"
		b.make(t, r)
		l := b.look(t, false)
		got, _ := seen(l, r.Room)
		if diff := cmp.Diff(broker.RoomSeen{RoomMark: r.RoomMark}, got); diff != "" {
			t.Error(diff)
		}
		if !l.Complete || l.SessionTimeout <= 0 || l.Sessions != 0 || l.Handles != 0 {
			t.Errorf("look of a server with nobody in it: %+v", l)
		}
	})
	t.Run("a room of another pool is not ours", func(t *testing.T) {
		at, r := b.at(t), b.spec("foreign")
		at.Pool, r.Pool = "another", "another"
		before := b.look(t, false)
		if err := b.Backend.Create(t.Context(), at, r); err != nil {
			t.Fatal(err)
		}
		after := b.look(t, false)
		if _, ours := seen(after, r.Room); ours || after.OtherRooms != before.OtherRooms+1 {
			t.Errorf("ours: %v; others: %d before and %d after", ours, before.OtherRooms, after.OtherRooms)
		}
	})
	t.Run("who may send is counted, and viewers are unknown unless asked for", func(t *testing.T) {
		r := b.spec("joined")
		b.make(t, r)
		leave := b.Join(t, b.at(t), r)
		defer leave()
		l := b.look(t, false)
		got, _ := seen(l, r.Room)
		if got.Publishers != 1 || got.Viewers != broker.Unknown || l.Handles != broker.Unknown || l.Sessions != 1 {
			t.Errorf("publishers %d, viewers %d, handles %d, sessions %d", got.Publishers, got.Viewers, l.Handles, l.Sessions)
		}
		l = b.look(t, true)
		if got, _ := seen(l, r.Room); got.Viewers != 0 || l.Handles != 1 {
			t.Errorf("asked for: viewers %d, handles %d; want 0 and 1", got.Viewers, l.Handles)
		}
	})
	t.Run("who only watches is counted when asked for", func(t *testing.T) {
		r := b.spec("watched")
		r.Settings = b.Watchable
		b.make(t, r)
		leave := b.Watch(t, b.at(t), r)
		defer leave()
		l := b.look(t, true)
		if got, _ := seen(l, r.Room); got.Publishers != 0 || got.Viewers != 1 || l.Handles != 1 {
			t.Errorf("publishers %d, viewers %d, handles %d; want 0, 1, 1", got.Publishers, got.Viewers, l.Handles)
		}
	})
	t.Run("the backend adds nothing to the load", func(t *testing.T) {
		if l := b.look(t, true); l.Sessions != 0 || l.Handles != 0 {
			t.Errorf("%d sessions, %d handles", l.Sessions, l.Handles)
		}
	})
}

// lookContext bounds a call that is to hang.
func lookContext(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), hangFor)
}
