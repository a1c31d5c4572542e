package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/broker"
)

func adoptClauses() []clause {
	return []clause{
		{"a room without a pin is adopted", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			a := broker.Adoption{Room: "a", Epoch: 12, Expected: 3, Settings: "hash", Labels: map[string]string{"x": "1"}}
			got := k.adoptOne(0, a)
			want := broker.Pin{
				Room: "a", Instance: name(0), Incarnation: life(0), Epoch: 12, State: broker.Live, Expected: 3, Reserved: 3, Settings: "hash",
				Labels: map[string]string{"x": "1"}, Created: got.Pin.Created, Since: got.Pin.Created, LastSeen: got.Pin.Created, CreatedAt: got.Pin.CreatedAt,
			}
			if diff := cmp.Diff(broker.AdoptResult{Room: "a", Epoch: 12, Outcome: broker.Adopted, Pin: want}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, k.pinned("a")); diff != "" {
				t.Errorf("looked up (-want +got):\n%s", diff)
			}
			if in := k.instance(0); in.Pins != 1 || in.Reserved != 3 {
				t.Errorf("got %d pins, %d reserved; want 1 and 3", in.Pins, in.Reserved)
			}
		}},
		{"a room with exactly this pin is known", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			p := k.pinOn("a", 0, 2)
			got := k.adoptOne(0, broker.Adoption{Room: "a", Epoch: p.Epoch, Expected: 9})
			if diff := cmp.Diff(broker.AdoptResult{Room: "a", Epoch: p.Epoch, Outcome: broker.Known, Pin: p}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if in := k.instance(0); in.Pins != 1 || in.Reserved != 2 {
				t.Errorf("got %d pins, %d reserved; want 1 and 2", in.Pins, in.Reserved)
			}
		}},
		{"a room that ended in this or a later epoch stays ended", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			p := k.pinOn("a", 0, 1)
			k.teardown("a")
			for i := range 2 {
				for _, e := range []broker.Epoch{p.Epoch, p.Epoch - 1} {
					got := k.adoptOne(i, broker.Adoption{Room: "a", Epoch: e})
					if got.Outcome != broker.Ended || got.Pin.Room != "" {
						t.Errorf("epoch %d on %s: got %+v, want ended, without a pin", e-p.Epoch, name(i), got)
					}
				}
			}
			k.unpinned("a")
			if got := k.adoptOne(0, broker.Adoption{Room: "a", Epoch: p.Epoch + 1}); got.Outcome != broker.Adopted {
				t.Errorf("a later epoch: got %+v, want adopted", got)
			}
		}},
		{"a forgotten tombstone stands against nothing", aClock, func(t *testing.T, k *kit) {
			k.ready(1)
			p := k.pinOn("a", 0, 1)
			k.teardown("a")
			k.pass(broker.TombstoneTTL + time.Second)
			if got := k.adoptOne(0, broker.Adoption{Room: "a", Epoch: p.Epoch}); got.Outcome != broker.Adopted {
				t.Errorf("got %+v, want adopted", got)
			}
		}},
		{"a pin of this epoch elsewhere, or of a later one, contradicts", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			p := k.pinOn("a", 0, 1)
			for _, c := range []struct {
				on    int
				epoch broker.Epoch
			}{{1, p.Epoch}, {1, p.Epoch - 1}, {0, p.Epoch - 1}} {
				got := k.adoptOne(c.on, broker.Adoption{Room: "a", Epoch: c.epoch})
				if diff := cmp.Diff(broker.AdoptResult{Room: "a", Epoch: c.epoch, Outcome: broker.Contradict, Pin: p}, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
			if got := k.pinned("a"); got.Instance != name(0) {
				t.Errorf("got the room on %s, want %s", got.Instance, name(0))
			}
		}},
		{"a pin contradicts although a tombstone stands there too", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			p := k.pinOn("a", 0, 1)
			k.teardown("a")
			k.pinOn("a", 1, 1)
			if got := k.adoptOne(0, broker.Adoption{Room: "a", Epoch: p.Epoch}); got.Outcome != broker.Contradict || got.Pin.Instance != name(1) {
				t.Errorf("got %+v, want a contradiction by the pin on %s", got, name(1))
			}
		}},
		{"a room of a later epoch replaces the pin", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			p := k.pinOn("a", 0, 4)
			got := k.adoptOne(1, broker.Adoption{Room: "a", Epoch: p.Epoch + 1, Expected: 2})
			if got.Outcome != broker.Adopted || got.Pin.Instance != name(1) {
				t.Errorf("got %+v, want adopted on %s", got, name(1))
			}
			if diff := cmp.Diff(got.Pin, k.pinned("a")); diff != "" {
				t.Errorf("looked up (-want +got):\n%s", diff)
			}
			if a, b := k.instance(0), k.instance(1); a.Pins != 0 || a.Reserved != 0 || b.Pins != 1 || b.Reserved != 2 {
				t.Errorf("got %d pins, %d reserved and %d, %d; want 0, 0 and 1, 2", a.Pins, a.Reserved, b.Pins, b.Reserved)
			}
			if got := k.tombstones(0); len(got) != 1 || got[0].Epoch != p.Epoch || got[0].Cause != broker.CauseGone {
				t.Errorf("got tombstones %+v, want the replaced pin's", got)
			}
		}},
		{"results come in the order asked", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			p := k.pinOn("b", 0, 1)
			got, err := k.Store.Adopt(k.ctx, k.term, name(0), life(0), []broker.Adoption{
				{Room: "c", Epoch: 3}, {Room: "b", Epoch: p.Epoch}, {Room: "a", Epoch: 1}, {Room: "c", Epoch: 2},
			})
			k.noError("Adopt", err)
			var s []string
			for _, r := range got {
				s = append(s, r.Room+" "+string(r.Outcome))
			}
			if diff := cmp.Diff([]string{"c adopted", "b known", "a adopted", "c contradict"}, s); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}},
		{"claims continue above every epoch that was seen", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			seen := k.pinOn("a", 0, 1).Epoch + 1_000_000_000_000
			k.adoptOne(0, broker.Adoption{Room: "b", Epoch: seen})
			if got := k.pinOn("c", 0, 1).Epoch; got != seen+1 {
				t.Errorf("after an adopted one: got %d, want %d", got, seen+1)
			}
			k.teardown("b")
			seen += 100
			k.pinOn("d", 0, 1)
			k.adoptOne(0, broker.Adoption{Room: "d", Epoch: seen})
			k.teardown("d")
			k.adoptOne(0, broker.Adoption{Room: "d", Epoch: seen})
			if got := k.pinOn("e", 0, 1).Epoch; got <= seen {
				t.Errorf("got %d, want one above %d", got, seen)
			}
		}},
		{"a wrong incarnation adopts nothing", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			_, err := k.Store.Adopt(k.ctx, k.term, name(0), "another", []broker.Adoption{{Room: "a", Epoch: 1}})
			k.wantError("Adopt", err, broker.ErrStale)
			_, err = k.Store.Adopt(k.ctx, k.term, name(7), life(7), []broker.Adoption{{Room: "a", Epoch: 1}})
			k.wantError("Adopt on an unknown instance", err, broker.ErrInstanceNotFound)
			k.unpinned("a")
		}},
		{"what a lost instance shows when it comes back has ended", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			p := k.confirm(k.pinOn("a", 0, 1))
			_, err := k.Store.Lost(k.ctx, k.term, name(0), life(0))
			k.noError("Lost", err)
			if got := k.adoptOne(0, broker.Adoption{Room: "a", Epoch: p.Epoch}); got.Outcome != broker.Ended {
				t.Errorf("got %+v, want ended", got)
			}
		}},
		{"marks and seals do not hinder an adoption", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			k.mark(0, broker.OwnerHook)
			if got := k.adoptOne(0, broker.Adoption{Room: "a", Epoch: 1}); got.Outcome != broker.Adopted {
				t.Errorf("got %+v, want adopted", got)
			}
		}},
	}
}

// adoptOne adopts one room on instance i.
func (k *kit) adoptOne(i int, a broker.Adoption) broker.AdoptResult {
	k.t.Helper()
	res, err := k.Store.Adopt(k.ctx, k.term, name(i), life(i), []broker.Adoption{a})
	k.noError("Adopt", err)
	if len(res) != 1 {
		k.t.Fatalf("Adopt: got %d results, want 1", len(res))
	}
	return res[0]
}
