package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"strconv"
	"time"

	"github.com/roomscaler/roomscaler/broker"
)

// State implements broker.Store.
func (s *Store) State(ctx context.Context) (broker.StoreState, error) {
	const doing = "read the store's state"
	return stateOf(doing)(s.step(ctx, doing, s.scripts.state, ""))
}

// Begin implements broker.Store.
func (s *Store) Begin(ctx context.Context) (broker.StoreState, error) {
	const doing = "begin a term"
	return stateOf(doing)(s.step(ctx, doing, s.scripts.begin, "", rand.Text()))
}

func stateOf(doing string) func(reply, error) (broker.StoreState, error) {
	return func(r reply, err error) (broker.StoreState, error) {
		if err != nil {
			return broker.StoreState{}, err
		}
		st := r.state()
		if r.bad {
			return broker.StoreState{}, unreadable(doing, "the state")
		}
		return st, nil
	}
}

// Assert implements broker.Store.
func (s *Store) Assert(ctx context.Context, term broker.Term, a broker.Assertion) error {
	args := []any{strconv.Itoa(a.Floor), strconv.Itoa(a.Limit), strconv.Itoa(len(a.Instances))}
	for _, in := range a.Instances {
		args = append(args, quote(in.Name), strconv.Itoa(in.Ordinal), quote(in.Address), quote(in.Incarnation),
			flag(in.Released), flag(in.Lost), strconv.Itoa(len(in.Marks)))
		for _, m := range in.Marks {
			args = append(args, quote(string(m.Owner)), quote(m.Reason), strconv.FormatInt(int64(m.Grace), 10), millis(m.Elapsed))
		}
	}
	_, err := s.step(ctx, "assert what is remembered", s.scripts.assert, term, args...)
	return err
}

// Finish implements broker.Store.
func (s *Store) Finish(ctx context.Context, term broker.Term, hold time.Duration) (broker.StoreState, error) {
	const doing = "finish the rebuild"
	return stateOf(doing)(s.step(ctx, doing, s.scripts.finish, term, millis(hold)))
}

// Facts implements broker.Store.
func (s *Store) Facts(ctx context.Context) (broker.Facts, error) {
	const doing = "read the facts"
	r, err := s.step(ctx, doing, s.scripts.facts, "")
	if err != nil {
		return broker.Facts{}, err
	}
	f := broker.Facts{StoreState: r.state(), Demand: broker.Demand{Rooms: r.int(), Participants: r.int()}, Plan: r.plan()}
	f.Instances = make([]broker.Instance, 0, len(r.fields)/3)
	for len(r.fields) > 0 && !r.bad {
		f.Instances = append(f.Instances, r.instance())
	}
	if r.bad {
		return broker.Facts{}, unreadable(doing, "what the store holds")
	}
	slices.SortFunc(f.Instances, func(a, b broker.Instance) int {
		return cmp.Or(cmp.Compare(a.Ordinal, b.Ordinal), cmp.Compare(a.Name, b.Name))
	})
	return f, nil
}

// PutPlan implements broker.Store.
func (s *Store) PutPlan(ctx context.Context, term broker.Term, u broker.PlanUpdate) (broker.Plan, error) {
	const doing = "store the plan"
	args := []any{strconv.FormatInt(u.IfVersion, 10), strconv.Itoa(u.Desired), strconv.Itoa(u.Target), quote(u.EmptyWhen), string(u.Body),
		millis(u.GuardFor), strconv.Itoa(len(u.Seal))}
	for _, r := range u.Seal {
		args = append(args, quote(r.Instance), quote(r.Incarnation), flag(r.Occupied))
	}
	for _, name := range u.Unseal {
		args = append(args, quote(name))
	}
	r, err := s.step(ctx, doing, s.scripts.plan, term, args...)
	if err != nil {
		return broker.Plan{}, err
	}
	p := r.plan()
	if r.bad {
		return broker.Plan{}, unreadable(doing, "the plan")
	}
	return p, nil
}
