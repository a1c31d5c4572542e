package broker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/roomscaler/roomscaler/broker"
)

func TestCreateRoomWithin(t *testing.T) {
	full := func(t *testing.T) (*rig, *fakePool) {
		pool := newFakePool("j-0")
		r := newRig(t, pool, func(c *broker.Config) { c.MaxSessions = 2 })
		r.create("first")
		return r, pool
	}

	bubble(t, "it takes the place that comes free, in order of arrival", func(t *testing.T) {
		r, _ := full(t)
		var (
			mu    sync.Mutex
			order []string
			wg    sync.WaitGroup
		)
		for i := range 5 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				p, _, err := r.CreateRoomWithin(t.Context(), broker.CreateRequest{Room: fmt.Sprintf("r%d", i)}, time.Minute)
				if err != nil {
					t.Errorf("r%d: %v", i, err)
					return
				}
				mu.Lock()
				order = append(order, p.Pin.Room)
				mu.Unlock()
				time.Sleep(time.Second)
				_ = r.DeleteRoom(t.Context(), p.Pin.Room, 0)
			})
		}
		time.Sleep(time.Second)
		_ = r.DeleteRoom(t.Context(), "first", 0)
		wg.Wait()
		if d := cmp.Diff(order, []string{"r0", "r1", "r2", "r3", "r4"}); d != "" {
			t.Error(d)
		}
	})

	bubble(t, "each waiting room counts once as demand, for as long as it waits and a little more", func(t *testing.T) {
		r, _ := full(t)
		ctx, stop := context.WithCancel(t.Context())
		for i := range 3 {
			go func() {
				_, _, _ = r.CreateRoomWithin(ctx, broker.CreateRequest{Room: fmt.Sprintf("r%d", i)}, time.Hour)
			}()
			// Asking twice for one room does not count twice.
			go func() { _, _, _ = r.CreateRoomWithin(ctx, broker.CreateRequest{Room: "r0"}, time.Hour) }()
		}
		r.sweep(20)
		f, _ := r.Facts(t.Context())
		if d := cmp.Diff(f.Demand, broker.Demand{Rooms: 3, Participants: 6}); d != "" {
			t.Error(d)
		}
		stop()
		synctest.Wait()
		r.sweep(7)
		if f, _ = r.Facts(t.Context()); f.Demand.Rooms != 0 {
			t.Errorf("%d rooms are still wanted", f.Demand.Rooms)
		}
	})

	bubble(t, "it gives up at its time, and when its caller goes", func(t *testing.T) {
		r, _ := full(t)
		begun := time.Now()
		_, _, err := r.CreateRoomWithin(t.Context(), broker.CreateRequest{Room: "r"}, 3*time.Second)
		if !errors.Is(err, broker.ErrNoCapacity) || time.Since(begun) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, _, err = r.CreateRoomWithin(ctx, broker.CreateRequest{Room: "r"}, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		// Whoever gave up is out of the line.
		_ = r.DeleteRoom(t.Context(), "first", 0)
		if _, _, err := r.CreateRoomWithin(t.Context(), broker.CreateRequest{Room: "r2"}, time.Second); err != nil {
			t.Error(err)
		}
	})

	bubble(t, "the line is bounded", func(t *testing.T) {
		r, _ := full(t)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		for i := range 1000 {
			go func() {
				_, _, _ = r.CreateRoomWithin(ctx, broker.CreateRequest{Room: fmt.Sprintf("r%d", i)}, time.Hour)
			}()
		}
		synctest.Wait()
		if _, _, err := r.CreateRoomWithin(ctx, broker.CreateRequest{Room: "one too many"}, time.Hour); !errors.Is(err, broker.ErrQueueFull) {
			t.Error(err)
		}
	})

	bubble(t, "no other refusal is waited for", func(t *testing.T) {
		r, pool := full(t)
		_ = r.DeleteRoom(t.Context(), "first", 0)
		pool.at("j-0", func(s *fakeServer) { s.fault = broker.FaultTimeout })
		begun := time.Now()
		_, _, err := r.CreateRoomWithin(t.Context(), broker.CreateRequest{Room: "r"}, time.Hour)
		if !errors.Is(err, broker.ErrUncertain) || time.Since(begun) > 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}
