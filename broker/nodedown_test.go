package broker_test

import (
	"errors"
	"testing"
	"time"

	"github.com/roomscaler/roomscaler/broker"
)

// downFor makes a pool whose instance j-0 does not answer, on a node that is down, and sweeps for a minute and a
// half; then --lost-after is over by half a minute.
func downFor(t *testing.T, fault broker.Fault, each func(sweep int, p *fakePool)) *rig {
	t.Helper()
	pool := newFakePool("j-0")
	r := newRig(t, pool, func(c *broker.Config) { c.LostAfter = time.Minute })
	r.create("r")
	pool.at("j-0", func(s *fakeServer) { s.fault = fault })
	for i := range 18 {
		pool.mu.Lock()
		pool.down["j-0"] = true
		each(i, pool)
		pool.mu.Unlock()
		time.Sleep(r.Config().SweepInterval)
		r.Sweep(t.Context())
	}
	return r
}

func TestNodeDown(t *testing.T) {
	lost := func(t *testing.T, r *rig, want bool) {
		t.Helper()
		in := r.instance("j-0")
		if in.Lost != want || want == (in.Pins > 0) {
			t.Errorf("lost %v with %d pins, want lost %v", in.Lost, in.Pins, want)
		}
	}
	bubble(t, "an instance that does not answer is fenced once its node has been down for so long, and not forgotten while it is listed", func(t *testing.T) {
		r := downFor(t, broker.FaultUnreachable, func(int, *fakePool) {})
		lost(t, r, true)
		if n := r.ev.count(broker.InstanceLost); n != 1 {
			t.Errorf("%d events of the loss, want 1", n)
		}
		r.pool.mu.Lock()
		delete(r.pool.servers, "j-0") // the Pod object is gone
		r.pool.mu.Unlock()
		r.sweep(5)
		if _, _, err := r.Instance(t.Context(), "j-0"); !errors.Is(err, broker.ErrInstanceNotFound) {
			t.Errorf("%v once it is listed no more, want forgotten", err)
		}
	})
	bubble(t, "one that answers is not fenced", func(t *testing.T) {
		lost(t, downFor(t, "", func(int, *fakePool) {}), false)
	})
	bubble(t, "one that does not answer on a node in order is not fenced", func(t *testing.T) {
		lost(t, downFor(t, broker.FaultUnreachable, func(_ int, p *fakePool) { p.down["j-0"] = false }), false)
	})
	bubble(t, "a node that comes back for a moment begins its time anew", func(t *testing.T) {
		lost(t, downFor(t, broker.FaultUnreachable, func(i int, p *fakePool) { p.down["j-0"] = i != 9 }), false)
	})
	bubble(t, "what a finder said of a node before it failed does not stand", func(t *testing.T) {
		lost(t, downFor(t, broker.FaultUnreachable, func(i int, p *fakePool) {
			if i > 9 {
				p.findErr = errors.New("no answer")
			}
		}), false)
	})
	bubble(t, "time in which this broker did not run does not count", func(t *testing.T) {
		lost(t, downFor(t, broker.FaultUnreachable, func(i int, p *fakePool) {
			p.down["j-0"] = i >= 10
			if i == 12 {
				time.Sleep(time.Hour)
			}
		}), false)
	})
}
