package memstore

import (
	"context"
	"maps"

	"github.com/roomscaler/roomscaler/broker"
)

// Claim implements broker.Store.
func (s *Store) Claim(_ context.Context, term broker.Term, r broker.ClaimRequest) (broker.Pin, bool, error) {
	now := s.begin()
	defer s.mu.Unlock()
	if err := s.check(term); err != nil {
		return broker.Pin{}, false, err
	}
	if p, ok := s.pins[r.Room]; ok {
		s.demand.remove(r.Room)
		return clonePin(p), false, nil
	}
	if s.phase != broker.Ready {
		return broker.Pin{}, false, broker.ErrRebuilding
	}
	in := s.choose(r)
	if in == nil {
		s.demand.add(r.Room, r.Expected, now)
		return broker.Pin{}, false, broker.ErrNoCapacity
	}
	s.demand.remove(r.Room)
	wall := s.clock.wall
	s.epoch = max(s.epoch+1, broker.Epoch(wall.UnixMicro()))
	p := broker.Pin{
		Room: r.Room, Instance: in.facts.Name, Incarnation: in.facts.Incarnation, Epoch: s.epoch, State: broker.Creating,
		Expected: r.Expected, Reserved: r.Expected, Settings: r.Settings, Labels: maps.Clone(r.Labels),
		Created: now, Since: now, LastSeen: now, CreatedAt: wall,
	}
	s.bind(p)
	return clonePin(&p), true, nil
}

// choose returns the candidate that takes the room, or nil.
func (d *data) choose(r broker.ClaimRequest) *instance {
	var least *instance
	for _, c := range r.Candidates {
		in := d.instances[c.Instance]
		if in == nil || !d.open(&in.facts, c.Incarnation) {
			continue
		}
		after := in.facts.Load() + r.Expected
		if r.Hard > 0 && after > r.Hard {
			continue
		}
		if r.Pick == broker.PickFirst && (r.Soft <= 0 || after <= r.Soft) {
			return in
		}
		if least == nil || in.facts.Load() < least.facts.Load() {
			least = in
		}
	}
	return least
}

// open reports whether an instance, in this life, may take any room now.
func (d *data) open(f *broker.Instance, incarnation string) bool {
	return f.LookBegin != broker.Never && f.Incarnation == incarnation &&
		len(f.Marks) == 0 && f.Seal == nil && !f.Lost && !d.takenAway(f.Ordinal)
}

// takenAway reports whether a plan that may still be served takes the ordinal away.
func (d *data) takenAway(ordinal int) bool {
	return ordinal >= d.plan.Limit(d.clock.pool())
}
