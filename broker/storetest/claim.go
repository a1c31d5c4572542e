package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/broker"
)

func claimClauses() []clause {
	return []clause{
		{"a claim binds the room and says so", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			labels := map[string]string{"tenant": "x"}
			r := request("a", 3, 1)
			r.Settings, r.Labels = "hash", labels
			p := k.claim(r)
			labels["tenant"] = "changed"
			want := broker.Pin{
				Room: "a", Instance: name(0), Incarnation: life(0), Epoch: p.Epoch, State: broker.Creating, Expected: 3, Reserved: 3,
				Settings: "hash", Labels: map[string]string{"tenant": "x"}, Created: p.Created, Since: p.Created, LastSeen: p.Created, CreatedAt: p.CreatedAt,
			}
			if diff := cmp.Diff(want, p); diff != "" {
				t.Errorf("claimed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, k.pinned("a")); diff != "" {
				t.Errorf("looked up (-want +got):\n%s", diff)
			}
			if p.Epoch <= 0 || p.CreatedAt.IsZero() || p.Created > k.now() {
				t.Errorf("got epoch %d, created at %v and %v; want all of now", p.Epoch, p.CreatedAt, p.Created)
			}
		}},
		{"a room that has a pin gets it back, whatever is asked", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			want := k.pinOn("a", 1, 1)
			r := request("a", 50, 1)
			r.Settings, r.Hard = "other", 1
			for _, state := range []string{"free", "marked"} {
				got, fresh, err := k.Store.Claim(k.ctx, k.term, r)
				if err != nil || fresh {
					t.Fatalf("%s: got fresh %v, %v; want the pin", state, fresh, err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", state, diff)
				}
				k.mark(1, broker.OwnerOperator)
			}
		}},
		{"each claim has a greater epoch than all before it", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			last := broker.Epoch(0)
			for _, room := range []string{"c", "b", "a", "c"} {
				p := k.claim(request(room, 1, 1))
				if p.Epoch <= last || p.Epoch >= 1<<53 {
					t.Errorf("got epoch %d after %d, want a greater one below 2^53", p.Epoch, last)
				}
				last = p.Epoch
				k.teardown(room)
			}
		}},
		{"epochs of a store that lost everything are above all it ever gave", aLoss, func(t *testing.T, k *kit) {
			k.ready(1)
			before := k.claim(request("a", 1, 1)).Epoch
			k.Lose()
			if k.Advance != nil {
				k.Advance(time.Millisecond)
			}
			k.ready(1)
			if got := k.claim(request("a", 1, 1)).Epoch; got <= before {
				t.Errorf("got epoch %d, want one above %d", got, before)
			}
		}},
		{"least picks the least load inside the step", nothing, func(t *testing.T, k *kit) {
			k.ready(3)
			k.look(0, sessions(4))
			k.look(1, sessions(2))
			k.look(2, sessions(3))
			for _, want := range []int{1, 1, 2, 0} { // loads 4 2 3 -> 4 3 3 -> 4 4 3 -> 4 4 4
				room := string(rune('a' + len(k.pins())))
				if got := k.claim(request(room, 1, 3)).Instance; got != name(want) {
					t.Errorf("room %s: got %s, want %s", room, got, name(want))
				}
			}
		}},
		{"least picks the earlier of equals in the order given", nothing, func(t *testing.T, k *kit) {
			k.ready(3)
			r := request("a", 1, 3)
			r.Candidates[0], r.Candidates[2] = r.Candidates[2], r.Candidates[0]
			if got := k.claim(r).Instance; got != name(2) {
				t.Errorf("got %s, want %s", got, name(2))
			}
		}},
		{"first picks the first that stays within the soft limit", nothing, func(t *testing.T, k *kit) {
			k.ready(3)
			k.look(0, sessions(9))
			k.look(1, sessions(7))
			r := request("a", 3, 3)
			r.Pick, r.Soft = broker.PickFirst, 10
			if got := k.claim(r).Instance; got != name(1) {
				t.Errorf("up to exactly the limit: got %s, want %s", got, name(1))
			}
			r.Room = "b"
			if got := k.claim(r).Instance; got != name(2) {
				t.Errorf("when that is full: got %s, want %s", got, name(2))
			}
		}},
		{"first picks as least when none stays within the soft limit", nothing, func(t *testing.T, k *kit) {
			k.ready(3)
			for i, n := range []int{12, 10, 11} {
				k.look(i, sessions(n))
			}
			r := request("a", 1, 3)
			r.Pick, r.Soft = broker.PickFirst, 10
			if got := k.claim(r).Instance; got != name(1) {
				t.Errorf("got %s, want %s", got, name(1))
			}
		}},
		{"first without a soft limit picks the first", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			k.look(0, sessions(1000))
			r := request("a", 1, 2)
			r.Pick = broker.PickFirst
			if got := k.claim(r).Instance; got != name(0) {
				t.Errorf("got %s, want %s", got, name(0))
			}
		}},
		{"a marked instance takes no room until its last mark is gone (G2)", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			k.mark(0, broker.OwnerHook)
			k.mark(0, broker.OwnerScaler)
			k.refused(request("a", 1, 1))
			k.unmark(0, broker.OwnerScaler)
			k.refused(request("a", 1, 1))
			k.unmark(0, broker.OwnerHook)
			k.claim(request("a", 1, 1))
		}},
		{"a lost instance takes no room", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			_, err := k.Store.Lost(k.ctx, k.term, name(0), life(0))
			k.noError("Lost", err)
			k.refused(request("a", 1, 1))
		}},
		{"a released instance takes no room until its seal is off (G5)", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			k.mark(1, broker.OwnerScaler)
			k.plan(2)
			k.plan(1, seal(1))
			k.plan(2)
			k.refused(broker.ClaimRequest{Room: "a", Candidates: all(2)[1:]})
			_, err := k.put(broker.PlanUpdate{Desired: 2, Unseal: []string{name(1)}})
			k.noError("PutPlan", err)
			k.unmark(1, broker.OwnerScaler)
			k.pinOn("a", 1, 1)
		}},
		{"a released instance takes no room although a new life has no marks (G5)", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			k.mark(1, broker.OwnerScaler)
			k.plan(1, seal(1))
			_, err := k.Store.Rebirth(k.ctx, k.term, name(1), life(1), "second")
			k.noError("Rebirth", err)
			k.look(1, func(r *broker.LookReport) { r.Incarnation = "second" })
			k.plan(2)
			again := broker.ClaimRequest{Room: "a", Candidates: []broker.Candidate{{Instance: name(1), Incarnation: "second"}}}
			k.refused(again)
			_, err = k.put(broker.PlanUpdate{Desired: 2, Unseal: []string{name(1)}})
			k.noError("PutPlan", err)
			k.claim(again)
		}},
		{"an instance of another incarnation, or unknown, takes no room", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			k.refused(broker.ClaimRequest{Room: "a", Candidates: []broker.Candidate{
				{Instance: name(0), Incarnation: "another"}, {Instance: name(0)}, {Instance: name(7), Incarnation: life(7)},
			}})
		}},
		{"an instance that was never looked at takes no room", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			k.look(1, failed)
			k.assert(0, recalled(2))
			k.refused(broker.ClaimRequest{Room: "a", Candidates: []broker.Candidate{
				{Instance: name(1)}, {Instance: name(2), Incarnation: life(2)},
			}})
		}},
		{"without candidates there is no capacity", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			k.refused(broker.ClaimRequest{Room: "a", Expected: 1})
		}},
		{"an instance that fails to answer is still a candidate until it is marked", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			k.look(0, failed)
			k.claim(request("a", 1, 1))
		}},
	}
}
