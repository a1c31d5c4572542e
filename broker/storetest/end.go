package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/broker"
)

func endClauses() []clause {
	return []clause{
		{"an end removes the pin, gives its reservation back and returns it", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			p := k.pinOn("a", 0, 4)
			k.pinOn("b", 0, 2)
			if diff := cmp.Diff(p, k.teardown("a")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			k.unpinned("a")
			if in := k.instance(0); in.Pins != 1 || in.Reserved != 2 {
				t.Errorf("got %d pins, %d reserved; want 1 and 2", in.Pins, in.Reserved)
			}
		}},
		{"an end without a pin is ErrRoomNotFound", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			_, err := k.Store.End(k.ctx, k.term, broker.EndRequest{Room: "a", Epoch: 1, Cause: broker.CauseTeardown})
			k.wantError("End", err, broker.ErrRoomNotFound)
		}},
		{"an end of another epoch is stale, whatever the cause", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			p := k.pinOn("a", 0, 1)
			k.tick()
			for _, cause := range []broker.Cause{broker.CauseRefused, broker.CauseTeardown, broker.CauseGone} {
				k.stale(broker.EndRequest{Room: "a", Epoch: p.Epoch - 1, Cause: cause, Begin: k.now() + 1000})
				k.stale(broker.EndRequest{Room: "a", Epoch: p.Epoch + 1, Cause: cause, Begin: k.now() + 1000})
			}
			k.stale(broker.EndRequest{Room: "a", Epoch: 0, Cause: broker.CauseRefused})
			k.stale(broker.EndRequest{Room: "a", Epoch: 0, Cause: broker.CauseGone, Begin: k.now() + 1000})
			k.confirm(p)
			k.stale(broker.EndRequest{Room: "a", Epoch: p.Epoch + 1, Cause: broker.CauseExpired, TTL: -time.Hour})
		}},
		{"a teardown ends exactly its epoch, or any without one", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			p := k.confirm(k.pinOn("a", 0, 1))
			k.end(broker.EndRequest{Room: "a", Epoch: p.Epoch, Cause: broker.CauseTeardown})
			k.pinOn("a", 0, 1)
			k.end(broker.EndRequest{Room: "a", Cause: broker.CauseTeardown})
			k.unpinned("a")
		}},
		{"a refusal ends only a pin that is still creating", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			p := k.pinOn("a", 0, 1)
			k.end(broker.EndRequest{Room: "a", Epoch: p.Epoch, Cause: broker.CauseRefused})
			p = k.confirm(k.pinOn("a", 0, 1))
			k.stale(broker.EndRequest{Room: "a", Epoch: p.Epoch, Cause: broker.CauseRefused})
		}},
		{"gone ends only a pin whose last change is before the look", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			p := k.pinOn("a", 0, 1)
			k.tick()
			begin := k.now()
			k.tick()
			live := k.confirm(p)
			for _, b := range []broker.PoolTime{begin, live.Since} {
				k.stale(broker.EndRequest{Room: "a", Epoch: p.Epoch, Cause: broker.CauseGone, Begin: b})
			}
			k.end(broker.EndRequest{Room: "a", Epoch: p.Epoch, Cause: broker.CauseGone, Begin: live.Since + 1})
		}},
		{"gone ends a pin that is still creating as well", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			p := k.pinOn("a", 0, 1)
			k.stale(broker.EndRequest{Room: "a", Epoch: p.Epoch, Cause: broker.CauseGone, Begin: p.Since})
			k.end(broker.EndRequest{Room: "a", Epoch: p.Epoch, Cause: broker.CauseGone, Begin: p.Since + 1})
		}},
		{"expiry ends only a live pin that nobody has looked up within the TTL", aClock, func(t *testing.T, k *kit) {
			k.ready(1)
			p := k.pinOn("a", 0, 1)
			expire := broker.EndRequest{Room: "a", Epoch: p.Epoch, Cause: broker.CauseExpired, TTL: time.Minute}
			k.pass(61 * time.Second)
			k.stale(expire)
			k.confirm(p)
			_, _, err := k.Store.Lookup(k.ctx, "a", true)
			k.noError("Lookup", err)
			k.pass(59 * time.Second)
			k.stale(expire)
			k.pass(2 * time.Second)
			k.pinned("a")
			k.end(expire)
		}},
		{"time that the pool's clock did not count expires nothing", aClock, func(t *testing.T, k *kit) {
			k.ready(1)
			p := k.confirm(k.pinOn("a", 0, 1))
			k.Advance(24 * time.Hour)
			k.stale(broker.EndRequest{Room: "a", Epoch: p.Epoch, Cause: broker.CauseExpired, TTL: time.Minute})
		}},
		{"lost and reborn end nothing by End", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			p := k.confirm(k.pinOn("a", 0, 1))
			for _, cause := range []broker.Cause{broker.CauseLost, broker.CauseReborn, "", "made-up"} {
				k.stale(broker.EndRequest{Room: "a", Epoch: p.Epoch, Cause: cause, Begin: k.now() + 1000, TTL: -time.Hour})
			}
		}},
		{"an end leaves a tombstone on its instance", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			p := k.pinOn("a", 0, 1)
			k.end(broker.EndRequest{Room: "a", Epoch: p.Epoch, Cause: broker.CauseRefused})
			q := k.pinOn("a", 1, 1)
			k.teardown("a")
			for i, want := range []broker.Tombstone{{Room: "a", Epoch: p.Epoch, Cause: broker.CauseRefused}, {Room: "a", Epoch: q.Epoch, Cause: broker.CauseTeardown}} {
				got := k.tombstones(i)
				if len(got) != 1 {
					t.Fatalf("%s: got %+v, want one", name(i), got)
				}
				if got[0].Ended < p.Created || got[0].Ended > k.now() {
					t.Errorf("%s: got ended %v, want now", name(i), got[0].Ended)
				}
				want.Ended = got[0].Ended
				if got[0] != want {
					t.Errorf("%s: got %+v, want %+v", name(i), got[0], want)
				}
			}
		}},
		{"two lives of a room on one instance leave two tombstones", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			for range 2 {
				k.pinOn("a", 0, 1)
				k.teardown("a")
			}
			if got := k.tombstones(0); len(got) != 2 {
				t.Errorf("got %+v, want both epochs", got)
			}
		}},
		{"a refused end leaves no tombstone", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			p := k.pinOn("a", 0, 1)
			k.stale(broker.EndRequest{Room: "a", Epoch: p.Epoch + 1, Cause: broker.CauseTeardown})
			if got := k.tombstones(0); len(got) != 0 {
				t.Errorf("got %+v, want none", got)
			}
		}},
		{"a tombstone is forgotten after TombstoneTTL", aClock, func(t *testing.T, k *kit) {
			k.ready(1)
			k.pinOn("a", 0, 1)
			k.teardown("a")
			k.pass(broker.TombstoneTTL / 2)
			k.pinOn("b", 0, 1)
			k.teardown("b")
			k.pass(broker.TombstoneTTL/2 - time.Second)
			if got := k.tombstones(0); len(got) != 2 {
				t.Errorf("just before: got %+v, want both", got)
			}
			k.pass(2 * time.Second)
			if got := k.tombstones(0); len(got) != 1 || got[0].Room != "b" {
				t.Errorf("just after: got %+v, want only room b", got)
			}
		}},
	}
}

// stale checks that the end's condition does not hold and that the pin stays.
func (k *kit) stale(r broker.EndRequest) {
	k.t.Helper()
	want := k.pinned(r.Room)
	_, err := k.Store.End(k.ctx, k.term, r)
	k.wantError("End "+string(r.Cause), err, broker.ErrStale)
	if diff := cmp.Diff(want, k.pinned(r.Room)); diff != "" {
		k.t.Fatalf("the pin (-want +got):\n%s", diff)
	}
}
