package e2e

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/test/procs"
)

// load opens and closes rooms through both brokers until stop; homes counts what it was told.
type load struct {
	stop     func()
	created  atomic.Int64
	refused  atomic.Int64 // directory_rebuilding
	since    atomic.Int64 // ns of the first such answer
	until    atomic.Int64 // ns of the last such answer
	failures sync.Map     // other codes
}

func (c *cluster) load() *load {
	l := &load{}
	ctx, cancel := context.WithCancel(c.ctx)
	var wg sync.WaitGroup
	l.stop = func() { cancel(); wg.Wait() }
	c.t.Cleanup(l.stop)
	for w := range 4 {
		wg.Go(func() {
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for n := 0; ; n++ {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				room, b := fmt.Sprintf("load %d %d", w, n%40), c.nodes[(w+n)%2]
				if n%3 == 2 {
					_ = b.DeleteRoom(ctx, pool, fmt.Sprintf("load %d %d", w, (n-2)%40), 0)
					continue
				}
				_, _, err := b.CreateRoom(ctx, pool, room, brokerapi.CreateRoom{})
				switch code := problem(err); {
				case err == nil:
					l.created.Add(1)
				case code == brokerapi.CodeRebuilding:
					now := time.Now().UnixNano()
					l.refused.Add(1)
					l.since.CompareAndSwap(0, now)
					l.until.Store(now)
				case ctx.Err() == nil:
					l.failures.Store(code, err.Error())
				}
			}
		})
	}
	return l
}

// reaches waits until so many creates have been answered.
func (l *load) reaches(c *cluster, n int64) {
	c.t.Helper()
	c.eventually(20*time.Second, fmt.Sprintf("%d rooms are created under load", n), func() error {
		if got := l.created.Load(); got < n {
			return fmt.Errorf("%d so far", got)
		}
		return nil
	})
}

func TestG6_DirectoryCanBeLost(t *testing.T) {
	for _, kind := range []string{"FLUSHALL", "an older copy"} {
		t.Run(kind+" in the middle of load: rebuilt within two sweeps, no room with two homes, no number down", func(t *testing.T) {
			c := newCluster(t, 3, procs.RedisOptions{Snapshot: true})
			rdb := redis.NewClient(&redis.Options{Addr: c.redis.Addr()})
			defer rdb.Close()
			var calls []*call
			for i := range 10 {
				calls = append(calls, c.join(c.nodes[i%2], fmt.Sprintf("old call %d", i)))
			}
			before := c.raise(5)
			if err := rdb.Save(c.ctx).Err(); err != nil {
				t.Fatal(err)
			}
			l := c.load()
			l.reaches(c, 60)
			for i := range 10 {
				calls = append(calls, c.join(c.nodes[i%2], fmt.Sprintf("call %d", i)))
			}
			if _, err := c.nodes[0].Drain(c.ctx, pool, "janus-2", brokerapi.DrainRequest{Owner: "operator", Reason: "test"}); err != nil {
				t.Fatal(err)
			}

			if kind == "FLUSHALL" {
				if err := rdb.FlushAll(c.ctx).Err(); err != nil {
					t.Fatal(err)
				}
			} else {
				o := c.redis.Options()
				c.redis.Kill()
				r, err := procs.StartRedis(c.ctx, o)
				procs.Need(t, err)
				c.redis = r
			}
			c.eventually(15*time.Second, "creates are refused, then taken again", func() error {
				f, err := c.nodes[1].Facts(c.ctx, pool)
				if err == nil && (f.Phase != brokerapi.PhaseReady || f.Term == before.Term) {
					err = fmt.Errorf("phase %s, term %s", f.Phase, f.Term)
				}
				return err
			})
			l.reaches(c, l.created.Load()+60)
			l.stop()
			l.failures.Range(func(code, err any) bool {
				if code != brokerapi.CodeStoreUnavailable && code != "" {
					t.Errorf("a create failed otherwise: %v", err)
				}
				return true
			})
			t.Logf("%d created, %d refused while rebuilding, for %v", l.created.Load(), l.refused.Load(), time.Duration(l.until.Load()-l.since.Load()).Round(time.Millisecond))

			c.eventually(10*time.Second, "directory and servers agree", c.consistent)
			for _, k := range calls {
				p, err := c.nodes[0].Lookup(c.ctx, pool, k.pin.Room, false)
				if err != nil || p.Instance != k.pin.Instance || p.Epoch != k.pin.Epoch {
					t.Errorf("%q is at %s, epoch %d, %v; its people are at %s, epoch %d", k.pin.Room, p.Instance, p.Epoch, err, k.pin.Instance, k.pin.Epoch)
				}
			}
			c.alive(calls)
			in, err := c.nodes[0].Instance(c.ctx, pool, "janus-2")
			if err != nil || in.State != "cordoned" {
				t.Errorf("janus-2 is %s, %v; the operator's mark was there before", in.State, err)
			}
			f, err := c.nodes[0].Facts(c.ctx, pool)
			if err != nil || f.Floor < 5 {
				t.Errorf("the first plan may be %d, %v; 5 had been answered", f.Floor, err)
			}
			if _, err := c.nodes[0].PutPlan(c.ctx, pool, 0, brokerapi.PutPlan{Term: f.Term, Desired: 3}); problem(err) != brokerapi.CodeSealRefused {
				t.Errorf("a lower first plan: %v; want %s", err, brokerapi.CodeSealRefused)
			}
		})
	}
}

// raise stores a first plan and returns the facts with it.
func (c *cluster) raise(desired int) brokerapi.PoolFacts {
	c.t.Helper()
	f, err := c.nodes[0].Facts(c.ctx, pool)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.nodes[0].PutPlan(c.ctx, pool, 0, brokerapi.PutPlan{Term: f.Term, Desired: desired}); err != nil {
		c.t.Fatal(err)
	}
	return f
}
