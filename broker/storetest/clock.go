package storetest

import (
	"testing"
	"time"

	"github.com/roomscaler/roomscaler/broker"
)

func clockClauses() []clause {
	return []clause{
		{"the clock goes on with the wall clock", aClock, func(t *testing.T, k *kit) {
			k.begin()
			from := k.now()
			k.Advance(7 * time.Second)
			if got, want := k.now().Since(from), 7*time.Second; got != want {
				t.Errorf("got %v, want %v", got, want)
			}
			if got := k.state().Gap; got != broker.Never {
				t.Errorf("got gap %v, want Never", got)
			}
		}},
		{"a step adds at most the cap and is remembered as a gap", aClock, func(t *testing.T, k *kit) {
			k.begin()
			from := k.now()
			k.Advance(time.Hour)
			st := k.state()
			if got := st.Now.Since(from); got != StepCap {
				t.Errorf("got %v, want %v", got, StepCap)
			}
			if st.Gap != st.Now {
				t.Errorf("got gap at %v, want now, %v", st.Gap, st.Now)
			}
			gap := st.Gap
			k.Advance(time.Second)
			if st = k.state(); st.Gap != gap || st.Now.Since(gap) != time.Second {
				t.Errorf("after another second: got gap %v before now, want 1s", st.Now.Since(st.Gap))
			}
		}},
		{"a step of exactly the cap is no gap", aClock, func(t *testing.T, k *kit) {
			k.begin()
			from := k.now()
			k.Advance(StepCap)
			if st := k.state(); st.Now.Since(from) != StepCap || st.Gap != broker.Never {
				t.Errorf("got %v passed and gap %v, want %v and Never", st.Now.Since(from), st.Gap, StepCap)
			}
		}},
		{"a wall clock set back adds nothing and takes nothing", aClock, func(t *testing.T, k *kit) {
			k.begin()
			from := k.now()
			k.Advance(-time.Hour)
			if got := k.now(); got != from {
				t.Errorf("set back: got %v, want %v", got, from)
			}
			k.Advance(time.Second)
			if st := k.state(); st.Now.Since(from) != time.Second || st.Gap != broker.Never {
				t.Errorf("a second later: got %v passed and gap %v, want 1s and Never", st.Now.Since(from), st.Gap)
			}
		}},
		{"many small steps lose no time", aClock, func(t *testing.T, k *kit) {
			k.begin()
			from := k.now()
			for range 200 {
				k.Advance(300 * time.Microsecond)
				k.now()
			}
			if got, want := k.now().Since(from), 60*time.Millisecond; got < want-time.Millisecond || got > want+time.Millisecond {
				t.Errorf("got %v, want %v", got, want)
			}
		}},
		{"every method is a step", aClock, func(t *testing.T, k *kit) {
			k.ready(1)
			p := k.pinOn("a", 0, 1)
			for what, step := range map[string]func() error{
				"Lookup":  func() error { _, _, err := k.Store.Lookup(k.ctx, "a", true); return err },
				"Confirm": func() error { _, err := k.Store.Confirm(k.ctx, k.term, "a", p.Epoch); return err },
				"Record": func() error {
					_, err := k.Store.Record(k.ctx, k.term, broker.LookReport{Instance: name(0), Fault: broker.FaultOther})
					return err
				},
				"Facts": func() error { _, err := k.Store.Facts(k.ctx); return err },
				"Mark": func() error {
					_, err := k.Store.Mark(k.ctx, k.term, name(0), broker.MarkRequest{Owner: broker.OwnerHook})
					return err
				},
				"Tombstones": func() error { _, err := k.Store.Tombstones(k.ctx, name(0)); return err },
			} {
				from := k.now()
				k.Advance(9 * time.Second)
				k.noError(what, step())
				k.Advance(9 * time.Second)
				if st := k.state(); st.Now.Since(from) != 18*time.Second || st.Gap != broker.Never {
					t.Errorf("%s between two waits of 9s: got %v passed and gap %v, want 18s and Never", what, st.Now.Since(from), st.Gap)
				}
			}
		}},
		{"stored moments are never taken for none", nothing, func(t *testing.T, k *kit) {
			if st := k.begin(); st.Now < broker.PoolTime(24*time.Hour/time.Millisecond) {
				t.Errorf("got a clock that starts at %d, want one that starts near the wall clock", st.Now)
			}
		}},
	}
}
