package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/test/procs"
)

func TestG1_OneHome(t *testing.T) {
	c := newCluster(t, 3, procs.RedisOptions{})

	t.Run("200 concurrent creates of one room through two brokers: one 201, one pin, one Janus", func(t *testing.T) {
		var (
			wg    sync.WaitGroup
			mu    sync.Mutex
			fresh int
			pins  = map[int64]bool{}
		)
		for i := range 200 {
			wg.Go(func() {
				p, isNew, err := c.nodes[i%2].CreateRoom(c.ctx, pool, "the room", brokerapi.CreateRoom{})
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
					return
				}
				if isNew {
					fresh++
				}
				pins[p.Epoch] = true
			})
		}
		wg.Wait()
		if fresh != 1 || len(pins) != 1 {
			t.Errorf("%d answers 201 and %d pins; want 1 and 1", fresh, len(pins))
		}
		if err := c.consistent(); err != nil {
			t.Error(err)
		}
	})

	t.Run("a burst of 300 rooms spreads evenly", func(t *testing.T) {
		var wg sync.WaitGroup
		for i := range 300 {
			wg.Go(func() {
				if _, _, err := c.nodes[i%2].CreateRoom(c.ctx, pool, fmt.Sprintf("burst %d", i), brokerapi.CreateRoom{}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		count := map[string]int{}
		all := c.rooms()
		for _, at := range all {
			for _, i := range at {
				count[i]++
			}
		}
		mean := float64(len(all)) / 3
		for i, n := range count {
			if float64(n) > 1.1*mean {
				t.Errorf("%s has %d rooms; the mean is %.1f", i, n, mean)
			}
		}
		if err := c.consistent(); err != nil {
			t.Error(err)
		}
	})

	t.Run("a broker killed between claim and create: another finishes its claim", func(t *testing.T) {
		hit, stop := c.creates(false)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _, _ = c.nodes[0].CreateRoom(c.ctx, pool, "orphan", brokerapi.CreateRoom{})
		}()
		select {
		case <-hit:
		case <-time.After(10 * time.Second):
			t.Fatal("no create has come to a Janus")
		}
		c.nodes[0].kill()
		<-done
		pin, err := c.nodes[1].Lookup(c.ctx, pool, "orphan", false)
		if err != nil || pin.State != "creating" {
			t.Fatalf("pin %+v, %v; want the claim, in state creating", pin, err)
		}
		stop()
		got, _, err := c.nodes[1].CreateRoom(c.ctx, pool, "orphan", brokerapi.CreateRoom{})
		if err != nil || got.Epoch != pin.Epoch || got.State != "live" {
			t.Errorf("pin %+v, %v; want epoch %d, live", got, err, pin.Epoch)
		}
		c.nodes[0].restart()
		c.ready(c.nodes[0])
		if err := c.consistent(); err != nil {
			t.Error(err)
		}
	})

	t.Run("a create that takes effect and is never answered: the retry finds it", func(t *testing.T) {
		_, stop := c.creates(true)
		_, _, err := c.nodes[0].CreateRoom(c.ctx, pool, "late", brokerapi.CreateRoom{})
		if problem(err) != brokerapi.CodeInstanceUnreachable {
			t.Errorf("%v; want %s", err, brokerapi.CodeInstanceUnreachable)
		}
		stop()
		if _, _, err := c.nodes[1].CreateRoom(c.ctx, pool, "late", brokerapi.CreateRoom{}); err != nil {
			t.Error(err)
		}
		if err := c.consistent(); err != nil {
			t.Error(err)
		}
	})

	t.Run("teardowns racing creates and the sweep leave nothing behind", func(t *testing.T) {
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				for n := range 25 {
					room, b := fmt.Sprintf("race %d", (i+n)%4), c.nodes[(i+n)%2]
					if (i*3+n)%2 == 0 {
						_ = b.DeleteRoom(c.ctx, pool, room, 0)
					} else {
						_, _, _ = b.CreateRoom(c.ctx, pool, room, brokerapi.CreateRoom{})
					}
				}
			})
		}
		wg.Wait()
		c.eventually(15*time.Second, "directory and servers agree", c.consistent)
	})
}
