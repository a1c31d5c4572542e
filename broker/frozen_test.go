package broker_test

import (
	"testing"
	"time"

	"github.com/roomscaler/roomscaler/broker"
)

func TestG1_AFrozenBrokerFencesNothing(t *testing.T) {
	bubble(t, "what has come back while the broker that found it lost was stopped keeps its rooms", func(t *testing.T) {
		pool := newFakePool("j-0")
		r := newRig(t, pool, func(c *broker.Config) { c.LostAfter = time.Minute })
		p := r.create("r")
		frozen := join(t, pool, &flaky{Store: r.store.Store}, func(c *broker.Config) { c.LostAfter = time.Minute })
		frozen.sweep(2)
		pool.at("j-0", func(s *fakeServer) { s.fault = broker.FaultTimeout })
		pool.mu.Lock()
		pool.hidden["j-0"] = true
		pool.mu.Unlock()
		stopped, reads := false, 0
		frozen.store.afterFacts = func(f broker.Facts) {
			reads++
			in := f.Instances[0]
			judged := reads%2 == 0 // a sweep reads before its looks and after them
			if stopped || !judged || f.Now.Since(in.ListedAt) <= time.Minute || f.Now.Since(in.FaultSince) <= time.Minute {
				return
			}
			stopped = true
			pool.at("j-0", func(s *fakeServer) { s.fault = "" })
			pool.mu.Lock()
			pool.hidden["j-0"] = false
			pool.mu.Unlock()
			r.sweep(2)
			time.Sleep(time.Minute)
		}
		for range 30 {
			if stopped {
				break
			}
			frozen.sweep(1)
		}
		if !stopped {
			t.Fatal("the instance was never to be fenced")
		}
		r.sweep(1)
		if q, err := r.Lookup(t.Context(), "r", false); err != nil || q.Pin.Epoch != p.Pin.Epoch {
			t.Errorf("%+v, %v; want the room at its home", q.Pin, err)
		}
		if n := frozen.ev.count(broker.InstanceLost); n != 0 {
			t.Errorf("fenced %d times; want never", n)
		}
	})
}
