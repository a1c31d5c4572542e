package broker_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/memstore"
)

// fakePool is a pool of media servers in memory, a Backend and a Finder: for faults that a real server cannot be
// made to show at the wanted moment.
type fakePool struct {
	mu      sync.Mutex
	servers map[string]*fakeServer
	hidden  map[string]bool // not listed by the finder
	down    map[string]bool // listed as on a node that is down
	findErr error
}

type fakeServer struct {
	marker   *broker.InstanceMark
	rooms    map[broker.Epoch]*fakeRoom
	sessions int
	fault    broker.Fault  // every call fails with it
	late     bool          // creates take effect and are never answered
	slow     time.Duration // creates take so long
	refuse   bool          // creates are refused
	hide     bool          // rooms are left out of looks, not of questions by name
	private  bool          // rooms may be hidden, and the look says so
	mute     bool          // questions by name are not answered
	strings  bool          // it wants strings as ids
	unmarked bool          // no marker can be made
	stuck    bool          // the same, and the question is held for as long as the caller waits
	others   int           // handles in rooms that are not ours
	creates  int
}

type fakeRoom struct {
	broker.RoomMark
	publishers, viewers int
}

func newFakePool(names ...string) *fakePool {
	p := &fakePool{servers: map[string]*fakeServer{}, hidden: map[string]bool{}, down: map[string]bool{}}
	for _, n := range names {
		p.servers[n] = &fakeServer{rooms: map[broker.Epoch]*fakeRoom{}}
	}
	return p
}

// at runs fn on a server under the pool's lock.
func (p *fakePool) at(name string, fn func(*fakeServer)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fn(p.servers[name])
}

// restart gives the server a new life: nothing of the old one is left.
func (p *fakePool) restart(name string) {
	p.at(name, func(s *fakeServer) { *s = fakeServer{rooms: map[broker.Epoch]*fakeRoom{}} })
}

// homes returns on which servers a room of that name is.
func (p *fakePool) homes(room string) (names []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n, s := range p.servers {
		for _, r := range s.rooms {
			if r.Room == room {
				names = append(names, n)
			}
		}
	}
	slices.Sort(names)
	return names
}

func (p *fakePool) Find(context.Context) ([]broker.Found, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.findErr != nil {
		return nil, p.findErr
	}
	var list []broker.Found
	for n := range p.servers {
		if o, _ := broker.OrdinalOf(n); !p.hidden[n] {
			list = append(list, broker.Found{Name: n, Ordinal: o, Address: n, NodeDown: p.down[n]})
		}
	}
	return list, nil
}

// call runs fn on the server of a target unless that has a fault.
func (p *fakePool) call(ctx context.Context, at broker.Target, fn func(*fakeServer) error) error {
	p.mu.Lock()
	s := p.servers[at.Address]
	fault := broker.FaultUnreachable
	if s != nil {
		fault = s.fault
	}
	if fault == "" {
		defer p.mu.Unlock()
		return fn(s)
	}
	p.mu.Unlock()
	if fault == broker.FaultTimeout {
		<-ctx.Done()
		return &broker.FaultError{Fault: fault, Err: fmt.Errorf("%w: %w", broker.ErrUncertain, ctx.Err())}
	}
	return &broker.FaultError{Fault: fault, Err: broker.ErrRefused}
}

func (p *fakePool) Look(ctx context.Context, at broker.Target, o broker.LookOptions) (l broker.Look, err error) {
	err = p.call(ctx, at, func(s *fakeServer) error {
		l = broker.Look{Marker: s.marker, Sessions: s.sessions, SessionTimeout: time.Minute, Complete: !s.private, Handles: broker.Unknown, StringIDs: s.strings}
		know := o.Viewers || s.sessions == 0
		if know {
			l.Handles = s.others
		}
		if s.hide {
			return nil
		}
		for _, r := range s.rooms {
			v := broker.RoomSeen{RoomMark: r.RoomMark, Publishers: r.publishers, Viewers: broker.Unknown}
			if know {
				v.Viewers = r.viewers
				l.Handles += r.publishers + r.viewers
			}
			l.Rooms = append(l.Rooms, v)
		}
		return nil
	})
	return l, err
}

func (p *fakePool) Plant(ctx context.Context, at broker.Target, incarnation string) (found string, err error) {
	err = p.call(ctx, at, func(s *fakeServer) error {
		if at.StringIDs != s.strings {
			return &broker.FaultError{Fault: broker.FaultOther, Advice: "ids are of the other kind", Err: broker.ErrRefused}
		}
		if s.unmarked {
			return &broker.FaultError{Fault: broker.FaultOther, Advice: "use one room key", Err: broker.ErrRefused}
		}
		if s.marker == nil {
			s.marker = &broker.InstanceMark{Pool: at.Pool, Instance: at.Instance, Incarnation: incarnation}
		}
		found = s.marker.Incarnation
		return nil
	})
	return found, err
}

func (p *fakePool) Create(ctx context.Context, at broker.Target, r broker.RoomSpec) error {
	var slow time.Duration
	p.at(at.Address, func(s *fakeServer) { slow = s.slow })
	time.Sleep(slow)
	late := false
	err := p.call(ctx, at, func(s *fakeServer) error {
		if s.refuse || at.StringIDs != s.strings {
			return &broker.FaultError{Fault: broker.FaultPluginMissing, Err: broker.ErrRefused}
		}
		if s.rooms[r.Epoch] == nil {
			s.rooms[r.Epoch] = &fakeRoom{RoomMark: r.RoomMark}
			s.creates++
		}
		late = s.late
		return nil
	})
	if late {
		<-ctx.Done()
		return &broker.FaultError{Fault: broker.FaultTimeout, Err: fmt.Errorf("%w: %w", broker.ErrUncertain, ctx.Err())}
	}
	return err
}

func (p *fakePool) Destroy(ctx context.Context, at broker.Target, r broker.RoomRef, o broker.DestroyOptions) error {
	return p.call(ctx, at, func(s *fakeServer) error {
		if f := s.rooms[r.Epoch]; f != nil && o.OnlyVacant && f.publishers+f.viewers > 0 {
			return broker.ErrRefused
		}
		delete(s.rooms, r.Epoch)
		return nil
	})
}

func (p *fakePool) Inspect(ctx context.Context, at broker.Target, r broker.RoomRef) (o broker.Occupancy, err error) {
	stuck := false
	p.at(at.Address, func(s *fakeServer) { stuck = s.stuck })
	if stuck {
		<-ctx.Done()
		return o, &broker.FaultError{Fault: broker.FaultTimeout, Err: fmt.Errorf("%w: %w", broker.ErrUncertain, ctx.Err())}
	}
	err = p.call(ctx, at, func(s *fakeServer) error {
		if s.mute {
			return &broker.FaultError{Fault: broker.FaultTimeout, Err: broker.ErrUncertain}
		}
		if f := s.rooms[r.Epoch]; f != nil {
			o = broker.Occupancy{Exists: true, Publishers: f.publishers, Viewers: f.viewers}
		}
		return nil
	})
	return o, err
}

// join puts people in a room, each with a session.
func (p *fakePool) join(t *testing.T, at broker.Placed, publishers, viewers int) {
	t.Helper()
	p.at(at.Instance.Name, func(s *fakeServer) {
		r := s.rooms[at.Pin.Epoch]
		if r == nil {
			t.Errorf("nobody can join %q: no such room on %s", at.Pin.Room, at.Instance.Name)
			return
		}
		s.sessions += publishers + viewers
		r.publishers += publishers
		r.viewers += viewers
	})
}

// flaky is a store that can be replaced by an empty one, or made not to answer.
type flaky struct {
	broker.Store
	afterFacts func(broker.Facts) // nil: nothing happens between a read and its answer
}

func (f *flaky) Facts(ctx context.Context) (broker.Facts, error) {
	facts, err := f.Store.Facts(ctx)
	if f.afterFacts != nil && err == nil {
		f.afterFacts(facts)
	}
	return facts, err
}

// Record fails as a store behind a network does when the caller's time is over.
func (f *flaky) Record(ctx context.Context, term broker.Term, l broker.LookReport) (broker.Instance, error) {
	if err := ctx.Err(); err != nil {
		return broker.Instance{}, fmt.Errorf("%w: %w", broker.ErrStoreUnavailable, err)
	}
	return f.Store.Record(ctx, term, l)
}

func (f *flaky) flush() { f.Store = newStore() }

func newStore() broker.Store {
	return memstore.New(memstore.Options{StepCap: 10 * time.Second})
}

type events struct {
	mu   sync.Mutex
	list []broker.Event
}

func (e *events) on(v broker.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, v)
}

func (e *events) count(k broker.EventKind) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, v := range e.list {
		if v.Kind == k {
			n++
		}
	}
	return n
}

// rig is a broker of a fake pool, ready for use. It is made inside a synctest bubble; time passes only in sweep.
type rig struct {
	*broker.Service
	t     *testing.T
	pool  *fakePool
	store *flaky
	ev    *events
}

func newRig(t *testing.T, pool *fakePool, change ...func(*broker.Config)) *rig {
	t.Helper()
	r := join(t, pool, &flaky{Store: newStore()}, change...)
	r.ready()
	return r
}

// join makes another broker of the same pool and store.
func join(t *testing.T, pool *fakePool, store *flaky, change ...func(*broker.Config)) *rig {
	t.Helper()
	cfg := broker.Config{Pool: "p", Key: broker.RoomKey("0123456789abcdef")}
	for _, c := range change {
		c(&cfg)
	}
	ev := &events{}
	s, err := broker.NewService(cfg, store, pool, pool, ev.on)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{s, t, pool, store, ev}
}

// sweep lets n sweep intervals pass with a sweep at the end of each.
func (r *rig) sweep(n int) {
	r.t.Helper()
	for range n {
		time.Sleep(r.Config().SweepInterval)
		if rep := r.Sweep(r.t.Context()); rep.Err != nil {
			r.t.Fatalf("sweep: %v", rep.Err)
		}
	}
}

// ready sweeps until the directory is in use.
func (r *rig) ready() {
	r.t.Helper()
	for range 4 {
		r.sweep(1)
		if f, err := r.Facts(r.t.Context()); err == nil && f.Phase == broker.Ready {
			return
		}
	}
	r.t.Fatal("the directory does not get ready in 4 sweeps")
}

func (r *rig) create(room string) broker.Placed {
	r.t.Helper()
	p, _, err := r.CreateRoom(r.t.Context(), broker.CreateRequest{Room: room})
	if err != nil {
		r.t.Fatalf("create %q: %v", room, err)
	}
	return p
}

func (r *rig) instance(name string) broker.Instance {
	r.t.Helper()
	in, _, err := r.Instance(r.t.Context(), name)
	if err != nil {
		r.t.Fatalf("instance %s: %v", name, err)
	}
	return in
}

func (r *rig) term() broker.Term {
	r.t.Helper()
	st, err := r.store.State(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return st.Term
}

// CheckSettings takes any settings.
func (p *fakePool) CheckSettings(map[string]any) error { return nil }
