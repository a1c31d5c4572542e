package memstore_test

import (
	"testing"
	"time"

	"github.com/roomscaler/roomscaler/broker/memstore"
	"github.com/roomscaler/roomscaler/broker/storetest"
)

// open opens a store whose wall clock the test moves.
func open(t *testing.T) storetest.Subject {
	t.Helper()
	wall := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := memstore.New(memstore.Options{StepCap: storetest.StepCap, Now: func() time.Time { return wall }})
	return storetest.Subject{
		Store:   s,
		Advance: func(d time.Duration) { wall = wall.Add(d) },
		Lose:    s.Lose,
		Copy:    s.Copy,
	}
}

func TestStore(t *testing.T) { storetest.Run(t, open) }

func TestStore_WallClock(t *testing.T) {
	storetest.RunReal(t, func(*testing.T) storetest.Subject {
		return storetest.Subject{Store: memstore.New(memstore.Options{})}
	})
}

func TestStore_Linearizable(t *testing.T) {
	storetest.Linearizable(t, func(*testing.T) storetest.Subject {
		return storetest.Subject{Store: memstore.New(memstore.Options{})}
	}, 60)
}

func TestStore_SameAsItself(t *testing.T) { storetest.Same(t, open, open) }
