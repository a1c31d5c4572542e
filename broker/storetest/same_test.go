package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/memstore"
)

// forgetful is a store whose second mark of an owner replaces the first.
type forgetful struct{ broker.Store }

func (s forgetful) Mark(ctx context.Context, term broker.Term, instance string, m broker.MarkRequest) (broker.Instance, error) {
	if _, err := s.Unmark(ctx, term, instance, m.Owner); err != nil {
		return broker.Instance{}, err
	}
	return s.Store.Mark(ctx, term, instance, m)
}

func openMemory() Subject {
	wall := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := memstore.New(memstore.Options{StepCap: StepCap, Now: func() time.Time { return wall }})
	return Subject{Store: s, Advance: func(d time.Duration) { wall = wall.Add(d) }}
}

func TestSame_FindsADifference(t *testing.T) {
	const seeds = 200
	for seed := range seeds {
		other := openMemory()
		other.Store = forgetful{other.Store}
		if difference(t, openMemory(), other, drawMoves().Example(seed)) != "" {
			return
		}
	}
	t.Errorf("a store that forgets when it was marked was taken for the same in all of %d sequences", seeds)
}
