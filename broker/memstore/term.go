package memstore

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/roomscaler/roomscaler/broker"
)

// State implements broker.Store.
func (s *Store) State(context.Context) (broker.StoreState, error) {
	s.begin()
	defer s.mu.Unlock()
	if s.term == "" {
		return broker.StoreState{}, broker.ErrStoreLost
	}
	return s.state(), nil
}

func (d *data) state() broker.StoreState {
	return broker.StoreState{Term: d.term, Phase: d.phase, Now: d.clock.pool(), Gap: d.clock.gap, Floor: d.floor}
}

// Begin implements broker.Store.
func (s *Store) Begin(context.Context) (broker.StoreState, error) {
	s.begin()
	defer s.mu.Unlock()
	if s.term == "" {
		s.term, s.phase, s.floor = broker.Term(rand.Text()), broker.Rebuilding, 0
		s.clock.gap = broker.Never
		s.plan, s.demand = broker.Plan{}, newDemand()
		for _, in := range s.instances {
			in.facts.Answered = false
		}
	}
	return s.state(), nil
}

// Assert implements broker.Store.
func (s *Store) Assert(_ context.Context, term broker.Term, a broker.Assertion) error {
	s.begin()
	defer s.mu.Unlock()
	if err := s.check(term); err != nil {
		return err
	}
	for _, r := range a.Instances {
		s.remember(r)
	}
	s.floor = max(s.floor, a.Floor)
	if p := &s.plan; p.Version == 0 && a.Limit > 0 && (p.Desired == 0 || a.Limit < p.Desired) {
		p.Desired = a.Limit
	}
	s.raiseFloor()
	return nil
}

// remember enters what a broker remembers of one instance where the store has nothing.
func (d *data) remember(r broker.AssertedInstance) {
	now := d.clock.pool()
	in, ok := d.instances[r.Name]
	if !ok {
		in = d.introduce(r.Name, r.Ordinal, r.Address)
		in.facts.FirstSeen, in.facts.ListedAt = now, now // else its being unlisted would have no beginning
	}
	f := &in.facts
	if f.Incarnation == "" && r.Incarnation != "" {
		f.Incarnation, f.LifeSince = r.Incarnation, now
	}
	if r.Released && f.Seal == nil {
		f.Seal = &broker.Seal{At: now}
	}
	if r.Incarnation != "" && r.Incarnation != f.Incarnation {
		return
	}
	for _, m := range r.Marks {
		d.assertMark(f, broker.Mark{Owner: m.Owner, Reason: m.Reason, Since: now - broker.PoolTime(m.Elapsed.Milliseconds()), Grace: m.Grace})
	}
	if r.Lost && f.Incarnation == r.Incarnation {
		f.Lost = true
	}
}

// assertMark adds a mark, or gives the one that is there the longer remaining time.
func (d *data) assertMark(f *broker.Instance, m broker.Mark) {
	for i := range f.Marks {
		have := &f.Marks[i]
		if have.Owner != m.Owner {
			continue
		}
		now := d.clock.pool()
		left, ends := have.Remaining(now)
		other, otherEnds := m.Remaining(now)
		if ends && (!otherEnds || other > left) {
			have.Since, have.Grace = m.Since, m.Grace
		}
		return
	}
	addMark(f, m)
}

// raiseFloor lifts the floor above every known instance whose removal has not been
// answered.
func (d *data) raiseFloor() {
	for _, in := range d.instances {
		// Who remembers a seal may have looked before it was taken off: rooms tell that it was.
		if in.facts.Seal == nil || in.facts.Pins > 0 {
			d.floor = max(d.floor, in.facts.Ordinal+1)
		}
	}
}

// Finish implements broker.Store.
func (s *Store) Finish(_ context.Context, term broker.Term, hold time.Duration) (broker.StoreState, error) {
	now := s.begin()
	defer s.mu.Unlock()
	if err := s.check(term); err != nil {
		return broker.StoreState{}, err
	}
	if s.phase == broker.Rebuilding && s.rebuilt(now, hold) {
		s.phase = broker.Ready
		s.raiseFloor()
	}
	return s.state(), nil
}

func (d *data) rebuilt(now broker.PoolTime, hold time.Duration) bool {
	for _, in := range d.instances {
		if !in.facts.Answered && !in.facts.Lost || now.Since(in.known) < hold {
			return false
		}
	}
	return true
}
