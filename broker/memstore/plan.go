package memstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/roomscaler/roomscaler/broker"
)

// PutPlan implements broker.Store.
func (s *Store) PutPlan(_ context.Context, term broker.Term, u broker.PlanUpdate) (broker.Plan, error) {
	now := s.begin()
	defer s.mu.Unlock()
	if err := s.check(term); err != nil {
		return broker.Plan{}, err
	}
	if s.phase != broker.Ready {
		return broker.Plan{}, broker.ErrRebuilding
	}
	if u.IfVersion != s.plan.Version {
		return broker.Plan{}, broker.ErrVersion
	}
	release, err := s.released(u)
	if err != nil {
		return broker.Plan{}, err
	}
	next := broker.Plan{
		Version: s.plan.Version + 1, Desired: u.Desired, Target: u.Target, EmptyWhen: u.EmptyWhen,
		Body: slices.Clone(u.Body), StoredAt: now, Guards: s.plan.NextGuards(u.Desired, u.GuardFor, now),
	}
	for _, in := range release {
		in.facts.Seal = &broker.Seal{Version: next.Version, At: now}
	}
	for _, name := range u.Unseal {
		if in, ok := s.instances[name]; ok && in.facts.Ordinal < u.Desired {
			in.facts.Seal = nil
		}
	}
	s.plan = next
	return clonePlan(next), nil
}

// released returns the instances that the update releases, or *SealError. A lower
// number takes away all from there on, so each of them must be named; with any other
// number only the named ones are released.
func (d *data) released(u broker.PlanUpdate) ([]*instance, error) {
	before := d.plan.Desired
	if d.plan.Version == 0 {
		before = d.floor
	}
	named := make(map[string]broker.SealRequest, len(u.Seal))
	for _, r := range u.Seal {
		named[r.Instance] = r
	}
	var release []*instance
	var refusals []broker.SealRefusal
	ordinals := map[int]bool{}
	for _, in := range d.byOrdinal() {
		f := &in.facts
		ordinals[f.Ordinal] = true
		r, ok := named[f.Name]
		if f.Ordinal < u.Desired || f.Lost || f.Seal != nil || !ok && u.Desired >= before {
			continue
		}
		if why := refuse(f, r, ok); why != "" {
			refusals = append(refusals, broker.SealRefusal{Instance: f.Name, Ordinal: f.Ordinal, Why: why, Pins: f.Pins})
			continue
		}
		release = append(release, in)
	}
	if d.plan.Version == 0 {
		for o := u.Desired; o < d.floor; o++ {
			if !ordinals[o] {
				refusals = append(refusals, broker.SealRefusal{Ordinal: o, Why: "floor"})
				break
			}
		}
	}
	if len(refusals) > 0 {
		slices.SortStableFunc(refusals, func(a, b broker.SealRefusal) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
		return nil, &broker.SealError{Refusals: refusals}
	}
	return release, nil
}

// refuse says why an instance may not be released, "" if it may.
func refuse(f *broker.Instance, r broker.SealRequest, named bool) string {
	_, marked := f.Mark(broker.OwnerScaler)
	lived := f.LookBegin != broker.Never || f.Incarnation != ""
	switch {
	case !named:
		return "missing"
	case r.Incarnation != f.Incarnation:
		return "incarnation"
	case lived && !marked:
		return "mark"
	case f.Pins > 0 && !r.Occupied:
		return "pins"
	}
	return ""
}

func clonePlan(p broker.Plan) broker.Plan {
	p.Body, p.Guards = slices.Clone(p.Body), slices.Clone(p.Guards)
	return p
}
