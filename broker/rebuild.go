package broker

import (
	"context"
	"errors"
)

func isTermError(err error) bool {
	return errors.Is(err, ErrStoreLost) || errors.Is(err, ErrTerm)
}

func (s *Service) rebuilding() bool {
	f := s.snapshot.Load()
	return f == nil || f.Phase == Rebuilding
}

// syncTerm learns the store's present term, begins a new one if the store has none, and tells a term
// that is being rebuilt what this broker remembers. It does so in every sweep of a rebuild, because
// what the finder lists has to be known before the rebuild may end.
func (s *Service) syncTerm(ctx context.Context, found map[string]Found) (StoreState, error) {
	st, err := s.store.State(ctx)
	if errors.Is(err, ErrStoreLost) {
		st, err = s.store.Begin(ctx)
		if err == nil && st.Phase == Rebuilding {
			s.emit(RebuildBegun, "", "", 0, "")
		}
	}
	if err != nil {
		return st, err
	}
	old := s.term.Load()
	if old == nil || *old != st.Term {
		s.forgetQuiet()
	}
	if st.Phase == Rebuilding {
		if err := s.store.Assert(ctx, st.Term, s.assertion(found)); err != nil {
			return st, err
		}
	}
	// Only now: a claim in this term must not come before what this broker knows of marks and seals.
	s.term.Store(&st.Term)
	return st, nil
}

// assertion is what this broker remembers of the term before.
func (s *Service) assertion(found map[string]Found) Assertion {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := Assertion{Floor: s.lastDesired, Limit: s.lastLimit}
	for name, m := range s.memory {
		in := m.instance
		r := AssertedInstance{
			Name: name, Ordinal: in.Ordinal, Address: in.Address, Incarnation: in.Incarnation,
			Released: in.Seal != nil, Lost: in.Lost,
		}
		for _, k := range in.Marks {
			r.Marks = append(r.Marks, AssertedMark{Owner: k.Owner, Reason: k.Reason, Grace: k.Grace, Elapsed: k.Age(m.at)})
		}
		a.Instances = append(a.Instances, r)
	}
	for name, f := range found {
		if _, ok := s.memory[name]; !ok {
			a.Instances = append(a.Instances, AssertedInstance{Name: name, Ordinal: f.Ordinal, Address: f.Address})
		}
	}
	return a
}

// forgetQuiet drops times that were counted on the clock of a term that is over.
func (s *Service) forgetQuiet() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, m := range s.memory {
		m.quiet, m.viewersSeen = nil, 0
		s.memory[name] = m
	}
}

// recall enters the rooms of an instance that does not answer from this broker's last look at it, and
// reports whether it had one.
func (s *Service) recall(ctx context.Context, term Term, in Instance) (bool, error) {
	s.mu.Lock()
	m := s.memory[in.Name]
	s.mu.Unlock()
	if m.incarnation == "" || m.incarnation != in.Incarnation {
		return false, nil
	}
	_, err := s.store.Adopt(ctx, term, in.Name, in.Incarnation, m.rooms)
	return err == nil, err
}
