package memstore

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/roomscaler/roomscaler/broker"
)

// Confirm implements broker.Store.
func (s *Store) Confirm(_ context.Context, term broker.Term, room string, epoch broker.Epoch) (broker.Pin, error) {
	now := s.begin()
	defer s.mu.Unlock()
	if err := s.check(term); err != nil {
		return broker.Pin{}, err
	}
	p, ok := s.pins[room]
	if !ok || p.Epoch != epoch {
		return broker.Pin{}, broker.ErrStale
	}
	if p.State != broker.Live {
		p.State, p.Since = broker.Live, now
	}
	return clonePin(p), nil
}

// Lookup implements broker.Store.
func (s *Store) Lookup(_ context.Context, room string, touch bool) (broker.Pin, broker.StoreState, error) {
	now := s.begin()
	defer s.mu.Unlock()
	p, ok := s.pins[room]
	switch {
	case !ok && s.term == "":
		return broker.Pin{}, broker.StoreState{}, broker.ErrStoreLost
	case !ok:
		return broker.Pin{}, s.state(), broker.ErrRoomNotFound
	}
	if touch {
		p.LastSeen = now
	}
	return clonePin(p), s.state(), nil
}

// End implements broker.Store.
func (s *Store) End(_ context.Context, term broker.Term, r broker.EndRequest) (broker.Pin, error) {
	now := s.begin()
	defer s.mu.Unlock()
	if err := s.check(term); err != nil {
		return broker.Pin{}, err
	}
	p, ok := s.pins[r.Room]
	if !ok {
		return broker.Pin{}, broker.ErrRoomNotFound
	}
	if !mayEnd(p, r, now) {
		return broker.Pin{}, broker.ErrStale
	}
	return s.end(p, r.Cause), nil
}

// mayEnd reports whether the condition of the request's cause holds.
func mayEnd(p *broker.Pin, r broker.EndRequest, now broker.PoolTime) bool {
	if r.Cause == broker.CauseTeardown && r.Epoch == 0 {
		return true
	}
	if r.Epoch != p.Epoch {
		return false
	}
	switch r.Cause {
	case broker.CauseTeardown:
		return true
	case broker.CauseRefused:
		return p.State == broker.Creating
	case broker.CauseGone:
		return p.Since < r.Begin
	case broker.CauseExpired:
		return p.State == broker.Live && time.Duration(now-p.LastSeen)*time.Millisecond > r.TTL
	}
	return false
}

// Pins implements broker.Store.
func (s *Store) Pins(_ context.Context, instance, after string, limit int) ([]broker.Pin, error) {
	s.begin()
	defer s.mu.Unlock()
	index := &s.order
	if instance != "" {
		in, ok := s.instances[instance]
		if !ok {
			return nil, nil
		}
		index = &in.rooms
	}
	names := index.after(after, limit)
	out := make([]broker.Pin, len(names))
	for i, name := range names {
		out[i] = clonePin(s.pins[name])
	}
	return out, nil
}

// Tombstones implements broker.Store.
func (s *Store) Tombstones(_ context.Context, instance string) ([]broker.Tombstone, error) {
	now := s.begin()
	defer s.mu.Unlock()
	s.tombs.forget(now)
	return slices.Clone(s.tombs.byInstance[instance]), nil
}

// Adopt implements broker.Store.
func (s *Store) Adopt(_ context.Context, term broker.Term, instance, incarnation string, rooms []broker.Adoption) ([]broker.AdoptResult, error) {
	s.begin()
	defer s.mu.Unlock()
	if err := s.check(term); err != nil {
		return nil, err
	}
	in, err := s.known(instance)
	if err != nil {
		return nil, err
	}
	if in.facts.Incarnation != incarnation {
		return nil, broker.ErrStale
	}
	out := make([]broker.AdoptResult, len(rooms))
	for i, a := range rooms {
		out[i] = s.adopt(in, a)
	}
	return out, nil
}

func (d *data) adopt(in *instance, a broker.Adoption) broker.AdoptResult {
	d.epoch = max(d.epoch, a.Epoch)
	now := d.clock.pool()
	res := broker.AdoptResult{Room: a.Room, Epoch: a.Epoch}
	have, pinned := d.pins[a.Room]
	switch {
	case pinned && have.Epoch == a.Epoch && have.Instance == in.facts.Name:
		res.Outcome, res.Pin = broker.Known, clonePin(have)
		return res
	case pinned && have.Epoch >= a.Epoch:
		res.Outcome, res.Pin = broker.Contradict, clonePin(have)
		return res
	case d.tombs.stands(a.Room, a.Epoch, now):
		res.Outcome = broker.Ended
		return res
	case pinned:
		d.end(have, broker.CauseGone)
	}
	p := broker.Pin{
		Room: a.Room, Instance: in.facts.Name, Incarnation: in.facts.Incarnation, Epoch: a.Epoch, State: broker.Live,
		Expected: a.Expected, Reserved: a.Expected, Settings: a.Settings, Labels: maps.Clone(a.Labels),
		Created: now, Since: now, LastSeen: now, CreatedAt: d.clock.wall,
	}
	d.bind(p)
	res.Outcome, res.Pin = broker.Adopted, clonePin(&p)
	return res
}
