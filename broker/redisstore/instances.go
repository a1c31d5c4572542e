package redisstore

import (
	"context"
	"strconv"

	"github.com/roomscaler/roomscaler/broker"
)

// Record implements broker.Store.
func (s *Store) Record(ctx context.Context, term broker.Term, l broker.LookReport) (broker.Instance, error) {
	doing := "record a look at " + l.Instance
	args := make([]any, 0, 14+3*len(l.Reserve))
	args = append(args, quote(l.Instance), strconv.Itoa(l.Ordinal), quote(l.Address), flag(l.Listed), moment(l.Begin), quote(string(l.Fault)), quote(l.Advice),
		flag(l.Answered), quote(l.Incarnation), strconv.Itoa(l.Sessions), strconv.Itoa(l.Participants), strconv.Itoa(l.Rooms), flag(l.StringIDs), flag(l.Vacant))
	for _, v := range l.Reserve {
		args = append(args, quote(v.Room), v.Epoch.String(), strconv.Itoa(v.Left))
	}
	r, err := s.step(ctx, doing, s.scripts.record, term, args...)
	return oneInstance(doing, r, err)
}

// oneInstance reads an answer that is an instance.
func oneInstance(doing string, r reply, err error) (broker.Instance, error) {
	if err != nil {
		return broker.Instance{}, err
	}
	in := r.instance()
	if r.bad {
		return broker.Instance{}, unreadable(doing, "the instance")
	}
	return in, nil
}

// Rebirth implements broker.Store.
func (s *Store) Rebirth(ctx context.Context, term broker.Term, instance, from, to string) ([]broker.Pin, error) {
	doing := "replace the incarnation of " + instance
	r, err := s.step(ctx, doing, s.scripts.rebirth, term, quote(instance), quote(from), quote(to))
	return pinsOf(doing, r, err)
}

// Mark implements broker.Store.
func (s *Store) Mark(ctx context.Context, term broker.Term, instance string, m broker.MarkRequest) (broker.Instance, error) {
	doing := "mark " + instance
	r, err := s.step(ctx, doing, s.scripts.mark, term, quote(instance), quote(string(m.Owner)), quote(m.Reason), strconv.FormatInt(int64(m.Grace), 10))
	return oneInstance(doing, r, err)
}

// Unmark implements broker.Store.
func (s *Store) Unmark(ctx context.Context, term broker.Term, instance string, owner broker.Owner) (broker.Instance, error) {
	doing := "unmark " + instance
	r, err := s.step(ctx, doing, s.scripts.unmark, term, quote(instance), quote(string(owner)))
	return oneInstance(doing, r, err)
}

// Lost implements broker.Store.
func (s *Store) Lost(ctx context.Context, term broker.Term, instance, incarnation string) ([]broker.Pin, error) {
	doing := "fence " + instance
	r, err := s.step(ctx, doing, s.scripts.fence, term, quote(instance), quote(incarnation))
	return pinsOf(doing, r, err)
}

// Forget implements broker.Store.
func (s *Store) Forget(ctx context.Context, term broker.Term, instance string) error {
	_, err := s.step(ctx, "forget "+instance, s.scripts.forget, term, quote(instance))
	return err
}
