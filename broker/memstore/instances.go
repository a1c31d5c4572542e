package memstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/roomscaler/roomscaler/broker"
)

// Record implements broker.Store.
func (s *Store) Record(_ context.Context, term broker.Term, r broker.LookReport) (broker.Instance, error) {
	now := s.begin()
	defer s.mu.Unlock()
	if err := s.check(term); err != nil {
		return broker.Instance{}, err
	}
	in, ok := s.instances[r.Instance]
	if ok && r.Fault == "" && in.facts.Incarnation != "" && in.facts.Incarnation != r.Incarnation {
		return broker.Instance{}, broker.ErrStale
	}
	if !ok {
		in = s.introduce(r.Instance, r.Ordinal, r.Address)
	}
	f := &in.facts
	if r.Listed {
		f.Ordinal, f.ListedAt = r.Ordinal, now
		if r.Fault == "" && r.Begin >= f.LookBegin || f.LookBegin == broker.Never {
			f.Address = r.Address
		}
		if f.FirstSeen == broker.Never {
			f.FirstSeen = now
		}
	}
	f.Answered = f.Answered || r.Answered
	switch {
	case r.Begin < f.LookBegin: // a later look has been recorded
	case r.Fault != "":
		if f.Failures == 0 {
			f.FaultSince = r.Begin
		}
		f.Fault, f.Advice = r.Fault, r.Advice
		f.Failures++
		in.tried = max(in.tried, r.Begin)
	default:
		s.recordGood(in, r)
	}
	return s.show(in), nil
}

// recordGood takes the facts of a good look.
func (d *data) recordGood(in *instance, r broker.LookReport) {
	f := &in.facts
	if f.Incarnation == "" && r.Incarnation != "" {
		f.Incarnation, f.LifeSince = r.Incarnation, d.clock.pool()
	}
	if r.Begin >= in.tried {
		f.Fault, f.FaultSince, f.Failures, f.Advice = "", broker.Never, 0, r.Advice
	}
	f.LookBegin = r.Begin
	f.Sessions, f.Participants, f.Rooms, f.StringIDs = r.Sessions, r.Participants, r.Rooms, r.StringIDs
	for _, res := range r.Reserve {
		p, ok := d.pins[res.Room]
		if !ok || p.Epoch != res.Epoch || p.Instance != f.Name {
			continue
		}
		f.Reserved += res.Left - p.Reserved
		p.Reserved = res.Left
	}
	markedSince := slices.ContainsFunc(f.Marks, func(m broker.Mark) bool { return r.Begin <= m.Since })
	switch {
	case !r.Vacant || markedSince || f.Pins > 0:
		f.EmptySince = broker.Never
	case f.EmptySince == broker.Never:
		f.EmptySince = r.Begin
	}
}

// Rebirth implements broker.Store.
func (s *Store) Rebirth(_ context.Context, term broker.Term, instance, from, to string) ([]broker.Pin, error) {
	now := s.begin()
	defer s.mu.Unlock()
	in, err := s.life(term, instance, from)
	if err != nil {
		return nil, err
	}
	ended := s.endAll(in, broker.CauseReborn)
	f := &in.facts
	f.Incarnation, f.LifeSince = to, now
	f.Marks, f.EmptySince, f.Lost = nil, broker.Never, false
	return ended, nil
}

// life returns the instance if it is of this incarnation, else ErrStale.
func (d *data) life(term broker.Term, name, incarnation string) (*instance, error) {
	if err := d.check(term); err != nil {
		return nil, err
	}
	in, err := d.known(name)
	if err != nil {
		return nil, err
	}
	if in.facts.Incarnation != incarnation {
		return nil, broker.ErrStale
	}
	return in, nil
}

// Mark implements broker.Store.
func (s *Store) Mark(_ context.Context, term broker.Term, instance string, m broker.MarkRequest) (broker.Instance, error) {
	now := s.begin()
	defer s.mu.Unlock()
	if err := s.check(term); err != nil {
		return broker.Instance{}, err
	}
	in, err := s.known(instance)
	if err != nil {
		return broker.Instance{}, err
	}
	if i := slices.IndexFunc(in.facts.Marks, func(h broker.Mark) bool { return h.Owner == m.Owner }); i >= 0 {
		in.facts.Marks[i].Reason = m.Reason
	} else {
		addMark(&in.facts, broker.Mark{Owner: m.Owner, Reason: m.Reason, Since: now, Grace: m.Grace})
	}
	return s.show(in), nil
}

// addMark adds the mark of an owner who has none there.
func addMark(f *broker.Instance, m broker.Mark) {
	f.Marks = append(f.Marks, m)
	slices.SortFunc(f.Marks, func(a, b broker.Mark) int { return cmp.Compare(a.Owner, b.Owner) })
}

// Unmark implements broker.Store.
func (s *Store) Unmark(_ context.Context, term broker.Term, instance string, owner broker.Owner) (broker.Instance, error) {
	s.begin()
	defer s.mu.Unlock()
	if err := s.check(term); err != nil {
		return broker.Instance{}, err
	}
	in, err := s.known(instance)
	if err != nil {
		return broker.Instance{}, err
	}
	if in.facts.Seal != nil {
		return broker.Instance{}, broker.ErrReleased
	}
	in.facts.Marks = slices.DeleteFunc(in.facts.Marks, func(m broker.Mark) bool { return m.Owner == owner })
	return s.show(in), nil
}

// Lost implements broker.Store.
func (s *Store) Lost(_ context.Context, term broker.Term, instance, incarnation string) ([]broker.Pin, error) {
	s.begin()
	defer s.mu.Unlock()
	in, err := s.life(term, instance, incarnation)
	if err != nil {
		return nil, err
	}
	in.facts.Lost = true
	return s.endAll(in, broker.CauseLost), nil
}

// Forget implements broker.Store.
func (s *Store) Forget(_ context.Context, term broker.Term, instance string) error {
	s.begin()
	defer s.mu.Unlock()
	if err := s.check(term); err != nil {
		return err
	}
	in, err := s.known(instance)
	if err != nil {
		return err
	}
	f := &in.facts
	if f.Pins > 0 || f.LookBegin != broker.Never && f.Seal == nil && !f.Lost {
		return broker.ErrStale
	}
	delete(s.instances, instance)
	return nil
}

// Facts implements broker.Store.
func (s *Store) Facts(context.Context) (broker.Facts, error) {
	now := s.begin()
	defer s.mu.Unlock()
	if s.term == "" {
		return broker.Facts{}, broker.ErrStoreLost
	}
	s.demand.forget(now)
	out := broker.Facts{
		StoreState: s.state(),
		Instances:  make([]broker.Instance, 0, len(s.instances)),
		Plan:       clonePlan(s.plan),
		Demand:     broker.Demand{Rooms: len(s.demand.rooms), Participants: s.demand.total},
	}
	for _, in := range s.byOrdinal() {
		out.Instances = append(out.Instances, s.show(in))
	}
	return out, nil
}

func (d *data) byOrdinal() []*instance {
	out := make([]*instance, 0, len(d.instances))
	for _, in := range d.instances {
		out = append(out, in)
	}
	slices.SortFunc(out, func(a, b *instance) int {
		return cmp.Or(cmp.Compare(a.facts.Ordinal, b.facts.Ordinal), cmp.Compare(a.facts.Name, b.facts.Name))
	})
	return out
}
