package storetest

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/memstore"
)

// setter is a store whose claim first gets and then sets, as several peers do. With
// alone held around each call it is correct; the checker must tell the two apart.
type setter struct {
	broker.Store
	alone func() (release func())

	mu        sync.Mutex
	last      broker.Epoch
	confirmed map[broker.Epoch]bool
}

func (s *setter) Claim(ctx context.Context, term broker.Term, r broker.ClaimRequest) (broker.Pin, bool, error) {
	defer s.alone()()
	if p, _, err := s.Store.Lookup(ctx, r.Room, false); err == nil {
		return p, false, nil
	}
	f, err := s.Store.Facts(ctx)
	if err != nil {
		return broker.Pin{}, false, err
	}
	var best *broker.Instance
	for i, in := range f.Instances {
		if len(in.Marks) > 0 || in.Seal != nil || in.Ordinal >= f.Plan.Desired || in.Reserved+r.Expected > r.Hard {
			continue
		}
		if best == nil || in.Reserved < best.Reserved {
			best = &f.Instances[i]
		}
	}
	if best == nil {
		return broker.Pin{}, false, broker.ErrNoCapacity
	}
	for range 20 {
		runtime.Gosched()
	}
	s.mu.Lock()
	s.last++
	epoch := s.last
	s.mu.Unlock()
	res, err := s.Store.Adopt(ctx, term, best.Name, best.Incarnation, []broker.Adoption{{Room: r.Room, Epoch: epoch, Expected: r.Expected}})
	if err != nil {
		return broker.Pin{}, false, err
	}
	return res[0].Pin, true, nil
}

// Adopt makes pins live, so what is confirmed is kept here.
func (s *setter) Confirm(ctx context.Context, term broker.Term, room string, epoch broker.Epoch) (broker.Pin, error) {
	defer s.alone()()
	p, err := s.Store.Confirm(ctx, term, room, epoch)
	if err == nil {
		s.mu.Lock()
		s.confirmed[epoch] = true
		s.mu.Unlock()
	}
	return p, err
}

func (s *setter) End(ctx context.Context, term broker.Term, r broker.EndRequest) (broker.Pin, error) {
	defer s.alone()()
	p, _, err := s.Store.Lookup(ctx, r.Room, false)
	if err != nil {
		return p, err
	}
	s.mu.Lock()
	live := s.confirmed[p.Epoch]
	s.mu.Unlock()
	if r.Cause == broker.CauseRefused && live || r.Cause == broker.CauseExpired && !live || r.Cause != broker.CauseTeardown && r.Epoch == 0 {
		return broker.Pin{}, broker.ErrStale
	}
	r.Cause = broker.CauseTeardown
	return s.Store.End(ctx, term, r)
}

func (s *setter) Mark(ctx context.Context, term broker.Term, instance string, m broker.MarkRequest) (broker.Instance, error) {
	defer s.alone()()
	return s.Store.Mark(ctx, term, instance, m)
}

func (s *setter) PutPlan(ctx context.Context, term broker.Term, u broker.PlanUpdate) (broker.Plan, error) {
	defer s.alone()()
	return s.Store.PutPlan(ctx, term, u)
}

func (s *setter) Unmark(ctx context.Context, term broker.Term, instance string, owner broker.Owner) (broker.Instance, error) {
	defer s.alone()()
	return s.Store.Unmark(ctx, term, instance, owner)
}

func openSetter(alone func() func()) Subject {
	s := memstore.New(memstore.Options{StepCap: time.Hour})
	return Subject{Store: &setter{Store: s, alone: alone, confirmed: map[broker.Epoch]bool{}}}
}

func TestLinearizable_RejectsGetThenSet(t *testing.T) {
	const seeds = 30
	for seed := range uint64(seeds) {
		s := openSetter(func() func() { return func() {} })
		if judge(record(t, s, seed+1)) == porcupine.Illegal {
			return
		}
	}
	t.Errorf("a store that gets, then sets, was accepted in all of %d histories", seeds)
}

func TestLinearizable_AcceptsGetThenSetAlone(t *testing.T) {
	for seed := range uint64(10) {
		var mu sync.Mutex
		s := openSetter(func() func() { mu.Lock(); return mu.Unlock })
		history := record(t, s, seed+1)
		if judge(history) != porcupine.Ok {
			t.Fatalf("seed %d: rejected:\n%s", seed+1, describe(history))
		}
	}
}
