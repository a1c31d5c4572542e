package broker_test

import (
	"fmt"
	"testing"

	"github.com/roomscaler/roomscaler/broker"
)

func TestSweep_MarksServersWhoseIDsAreStrings(t *testing.T) {
	bubble(t, "from the first look on, and after a restart with ids of the other kind", func(t *testing.T) {
		pool := newFakePool("j-0")
		pool.at("j-0", func(s *fakeServer) { s.strings = true })
		r := newRig(t, pool)
		if !r.create("a").Instance.StringIDs {
			t.Error("the instance is not known to want strings")
		}
		pool.restart("j-0")
		r.sweep(1)
		if r.create("b").Instance.StringIDs {
			t.Error("the instance is still taken to want strings")
		}
	})
}

func TestSweep_AnInstanceThatTakesNoMarkerSaysWhy(t *testing.T) {
	bubble(t, "its look has failed, with the advice of the marker", func(t *testing.T) {
		pool := newFakePool("j-0")
		pool.at("j-0", func(s *fakeServer) { s.unmarked = true })
		r := join(t, pool, &flaky{Store: newStore()})
		r.sweep(2)
		in := r.instance("j-0")
		if in.Fault != broker.FaultOther || in.Advice != "use one room key" || in.Failures < 2 || in.State() != broker.StateStarting {
			t.Errorf("%q (%s), %d failures, %s; want them told", in.Fault, in.Advice, in.Failures, in.State())
		}
	})
}

func TestSweep_ARestartThatACreateOutranEndsAllRooms(t *testing.T) {
	bubble(t, "within a sweep, though the first look finds a pinned room there", func(t *testing.T) {
		pool := newFakePool("j-0")
		r := newRig(t, pool)
		for i := range 200 {
			r.create(fmt.Sprint("old-", i))
		}
		r.sweep(1)
		pool.restart("j-0")
		r.create("new")
		r.sweep(1)
		if n := r.instance("j-0").Pins; n != 1 {
			t.Errorf("%d rooms are pinned; want the new one alone", n)
		}
	})
}
