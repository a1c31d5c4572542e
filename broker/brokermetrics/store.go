package brokermetrics

import (
	"context"
	"errors"
	"time"

	"github.com/roomscaler/roomscaler/broker"
)

// Store returns a store that counts the errors of another. Only faults count: a refusal such as
// broker.ErrNoCapacity is an answer.
func (m *Metrics) Store(pool string, s broker.Store) broker.Store { return &countedStore{s, m, pool} }

type countedStore struct {
	broker.Store
	m    *Metrics
	pool string
}

func (c *countedStore) count(step string, err error) {
	kind := ""
	switch {
	case err == nil:
		return
	case errors.Is(err, broker.ErrStoreUnavailable):
		kind = "unavailable"
	case errors.Is(err, broker.ErrStoreLost):
		kind = "lost"
	case errors.Is(err, broker.ErrTerm):
		kind = "term"
	default:
		for _, answer := range []error{broker.ErrRoomNotFound, broker.ErrInstanceNotFound, broker.ErrNoCapacity, broker.ErrStale, broker.ErrReleased,
			broker.ErrVersion, broker.ErrRebuilding, broker.ErrMarkNotFound, context.Canceled} {
			if errors.Is(err, answer) {
				return
			}
		}
		if _, ok := errors.AsType[*broker.SealError](err); ok {
			return
		}
		kind = "other"
	}
	c.m.storeErrors.WithLabelValues(c.pool, step, kind).Inc()
}

func (c *countedStore) State(ctx context.Context) (st broker.StoreState, err error) {
	st, err = c.Store.State(ctx)
	c.count("state", err)
	return st, err
}

func (c *countedStore) Begin(ctx context.Context) (st broker.StoreState, err error) {
	st, err = c.Store.Begin(ctx)
	c.count("begin", err)
	return st, err
}

func (c *countedStore) Assert(ctx context.Context, t broker.Term, a broker.Assertion) error {
	err := c.Store.Assert(ctx, t, a)
	c.count("assert", err)
	return err
}

func (c *countedStore) Finish(ctx context.Context, t broker.Term, hold time.Duration) (st broker.StoreState, err error) {
	st, err = c.Store.Finish(ctx, t, hold)
	c.count("finish", err)
	return st, err
}

func (c *countedStore) Claim(ctx context.Context, t broker.Term, r broker.ClaimRequest) (p broker.Pin, fresh bool, err error) {
	p, fresh, err = c.Store.Claim(ctx, t, r)
	c.count("claim", err)
	return p, fresh, err
}

func (c *countedStore) Confirm(ctx context.Context, t broker.Term, room string, e broker.Epoch) (p broker.Pin, err error) {
	p, err = c.Store.Confirm(ctx, t, room, e)
	c.count("confirm", err)
	return p, err
}

func (c *countedStore) Lookup(ctx context.Context, room string, touch bool) (p broker.Pin, st broker.StoreState, err error) {
	p, st, err = c.Store.Lookup(ctx, room, touch)
	c.count("lookup", err)
	return p, st, err
}

func (c *countedStore) End(ctx context.Context, t broker.Term, r broker.EndRequest) (p broker.Pin, err error) {
	p, err = c.Store.End(ctx, t, r)
	c.count("end", err)
	return p, err
}

func (c *countedStore) Pins(ctx context.Context, instance, after string, limit int) (list []broker.Pin, err error) {
	list, err = c.Store.Pins(ctx, instance, after, limit)
	c.count("pins", err)
	return list, err
}

func (c *countedStore) Tombstones(ctx context.Context, instance string) (list []broker.Tombstone, err error) {
	list, err = c.Store.Tombstones(ctx, instance)
	c.count("tombstones", err)
	return list, err
}

func (c *countedStore) Adopt(ctx context.Context, t broker.Term, instance, incarnation string, rooms []broker.Adoption) (list []broker.AdoptResult, err error) {
	list, err = c.Store.Adopt(ctx, t, instance, incarnation, rooms)
	c.count("adopt", err)
	return list, err
}

func (c *countedStore) Record(ctx context.Context, t broker.Term, r broker.LookReport) (in broker.Instance, err error) {
	in, err = c.Store.Record(ctx, t, r)
	c.count("record", err)
	return in, err
}

func (c *countedStore) Rebirth(ctx context.Context, t broker.Term, instance, from, to string) (list []broker.Pin, err error) {
	list, err = c.Store.Rebirth(ctx, t, instance, from, to)
	c.count("rebirth", err)
	return list, err
}

func (c *countedStore) Mark(ctx context.Context, t broker.Term, instance string, m broker.MarkRequest) (in broker.Instance, err error) {
	in, err = c.Store.Mark(ctx, t, instance, m)
	c.count("mark", err)
	return in, err
}

func (c *countedStore) Unmark(ctx context.Context, t broker.Term, instance string, o broker.Owner) (in broker.Instance, err error) {
	in, err = c.Store.Unmark(ctx, t, instance, o)
	c.count("unmark", err)
	return in, err
}

func (c *countedStore) Lost(ctx context.Context, t broker.Term, instance, incarnation string) (list []broker.Pin, err error) {
	list, err = c.Store.Lost(ctx, t, instance, incarnation)
	c.count("lost", err)
	return list, err
}

func (c *countedStore) Forget(ctx context.Context, t broker.Term, instance string) error {
	err := c.Store.Forget(ctx, t, instance)
	c.count("forget", err)
	return err
}

func (c *countedStore) Facts(ctx context.Context) (f broker.Facts, err error) {
	f, err = c.Store.Facts(ctx)
	c.count("facts", err)
	return f, err
}

func (c *countedStore) PutPlan(ctx context.Context, t broker.Term, u broker.PlanUpdate) (p broker.Plan, err error) {
	p, err = c.Store.PutPlan(ctx, t, u)
	c.count("put_plan", err)
	return p, err
}
