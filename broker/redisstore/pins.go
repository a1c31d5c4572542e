package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/roomscaler/roomscaler/broker"
)

// Claim implements broker.Store. Fresh is true for the call that made the pin, and only for it, however often
// the client had to send it.
func (s *Store) Claim(ctx context.Context, term broker.Term, r broker.ClaimRequest) (broker.Pin, bool, error) {
	doing := fmt.Sprintf("claim a home for room %q", r.Room)
	args := make([]any, 0, 6+2*len(r.Candidates))
	args = append(args, quote(r.Room), strconv.Itoa(r.Expected), writeDoc(r.Settings, r.Labels), string(r.Pick), strconv.Itoa(r.Soft), strconv.Itoa(r.Hard))
	for _, c := range r.Candidates {
		args = append(args, quote(c.Instance), quote(c.Incarnation))
	}
	a, err := s.step(ctx, doing, s.scripts.claim, term, args...)
	if err != nil {
		return broker.Pin{}, false, err
	}
	fresh := a.flag()
	p, err := onePin(doing, r.Room, a)
	return p, fresh, err
}

// onePin reads a pin that is the rest of an answer.
func onePin(doing, room string, r reply) (broker.Pin, error) {
	p := r.pin(room)
	if r.bad {
		return broker.Pin{}, unreadable(doing, "the pin")
	}
	return p, nil
}

// Confirm implements broker.Store.
func (s *Store) Confirm(ctx context.Context, term broker.Term, room string, epoch broker.Epoch) (broker.Pin, error) {
	doing := fmt.Sprintf("confirm room %q", room)
	r, err := s.step(ctx, doing, s.scripts.confirm, term, quote(room), epoch.String())
	if err != nil {
		return broker.Pin{}, err
	}
	return onePin(doing, room, r)
}

// Lookup implements broker.Store.
func (s *Store) Lookup(ctx context.Context, room string, touch bool) (broker.Pin, broker.StoreState, error) {
	doing := fmt.Sprintf("look up room %q", room)
	r, err := s.run(ctx, doing, s.scripts.lookup, s.keys[:lookupKeys], "", []any{quote(room), flag(touch)})
	if err != nil && !errors.Is(err, broker.ErrRoomNotFound) {
		return broker.Pin{}, broker.StoreState{}, err
	}
	var p broker.Pin
	if err == nil {
		p = r.pin(room)
	}
	st := r.state()
	if r.bad {
		return broker.Pin{}, broker.StoreState{}, unreadable(doing, "the pin")
	}
	return p, st, err
}

// End implements broker.Store.
func (s *Store) End(ctx context.Context, term broker.Term, r broker.EndRequest) (broker.Pin, error) {
	doing := fmt.Sprintf("end room %q", r.Room)
	a, err := s.step(ctx, doing, s.scripts.end, term, quote(r.Room), r.Epoch.String(), string(r.Cause), moment(r.Begin), millis(r.TTL))
	if err != nil {
		return broker.Pin{}, err
	}
	return onePin(doing, r.Room, a)
}

// Pins implements broker.Store.
func (s *Store) Pins(ctx context.Context, instance, after string, limit int) ([]broker.Pin, error) {
	doing := "list pins"
	r, err := s.step(ctx, doing, s.scripts.pins, "", quote(instance), quote(after), strconv.Itoa(limit))
	return pinsOf(doing, r, err)
}

// pinsOf reads rooms and records in turn.
func pinsOf(doing string, r reply, err error) ([]broker.Pin, error) {
	if err != nil {
		return nil, err
	}
	var pins []broker.Pin
	for len(r.fields) > 0 && !r.bad {
		pins = append(pins, r.pin(r.text()))
	}
	if r.bad {
		return nil, unreadable(doing, "a pin")
	}
	return pins, nil
}

// Tombstones implements broker.Store. They are in the order of their end.
func (s *Store) Tombstones(ctx context.Context, instance string) ([]broker.Tombstone, error) {
	const doing = "list ended rooms"
	r, err := s.step(ctx, doing, s.scripts.tombs, "", quote(instance))
	if err != nil {
		return nil, err
	}
	var stones []broker.Tombstone
	for len(r.fields) > 0 && !r.bad {
		stones = append(stones, broker.Tombstone{Room: r.text(), Epoch: broker.Epoch(r.int64()), Ended: r.time(), Cause: broker.Cause(r.text())})
	}
	if r.bad {
		return nil, unreadable(doing, "an ended room")
	}
	slices.SortFunc(stones, func(a, b broker.Tombstone) int {
		return cmp.Or(cmp.Compare(a.Ended, b.Ended), cmp.Compare(a.Epoch, b.Epoch))
	})
	return stones, nil
}

// Adopt implements broker.Store.
func (s *Store) Adopt(ctx context.Context, term broker.Term, instance, incarnation string, rooms []broker.Adoption) ([]broker.AdoptResult, error) {
	doing := "adopt rooms of " + instance
	args := make([]any, 0, 2+4*len(rooms))
	args = append(args, quote(instance), quote(incarnation))
	for _, a := range rooms {
		args = append(args, quote(a.Room), a.Epoch.String(), strconv.Itoa(a.Expected), writeDoc(a.Settings, a.Labels))
	}
	r, err := s.step(ctx, doing, s.scripts.adopt, term, args...)
	if err != nil {
		return nil, err
	}
	results := make([]broker.AdoptResult, len(rooms))
	for i, a := range rooms {
		results[i] = broker.AdoptResult{Room: a.Room, Epoch: a.Epoch, Outcome: broker.AdoptOutcome(r.raw())}
		if results[i].Outcome == broker.Ended {
			r.raw()
		} else {
			results[i].Pin = r.pin(a.Room)
		}
	}
	if r.bad {
		return nil, unreadable(doing, "an outcome")
	}
	return results, nil
}
