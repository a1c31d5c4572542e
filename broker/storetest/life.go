package storetest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/broker"
)

func lifeClauses() []clause {
	return []clause{
		{"a rebirth ends the pins of the life before and returns them", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			b, a := k.pinOn("b", 0, 2), k.pinOn("a", 0, 1)
			k.pinOn("c", 1, 1)
			got, err := k.Store.Rebirth(k.ctx, k.term, name(0), life(0), "second")
			k.noError("Rebirth", err)
			if diff := cmp.Diff([]broker.Pin{a, b}, byRoom(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			k.unpinned("a")
			k.pinned("c")
			if in := k.instance(0); in.Incarnation != "second" || in.Pins != 0 || in.Reserved != 0 {
				t.Errorf("got %+v, want the second life without pins", in)
			}
			for _, s := range k.tombstones(0) {
				if s.Cause != broker.CauseReborn {
					t.Errorf("got %+v, want cause reborn", s)
				}
			}
			if got := len(k.tombstones(0)); got != 2 {
				t.Errorf("got %d tombstones, want 2", got)
			}
		}},
		{"a rebirth ends marks, emptiness and loss, and leaves a seal", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			k.mark(1, broker.OwnerScaler)
			k.mark(1, broker.OwnerHook)
			k.look(1, vacant)
			k.plan(2)
			k.plan(1, seal(1))
			before := k.instance(1)
			_, err := k.Store.Lost(k.ctx, k.term, name(1), life(1))
			k.noError("Lost", err)
			k.tick()
			_, err = k.Store.Rebirth(k.ctx, k.term, name(1), life(1), "second")
			k.noError("Rebirth", err)
			in := k.instance(1)
			if len(in.Marks) != 0 || in.EmptySince != broker.Never || in.Lost || in.LifeSince <= before.LifeSince {
				t.Errorf("got %+v, want a new life without marks", in)
			}
			if diff := cmp.Diff(before.Seal, in.Seal); diff != "" || in.Seal == nil {
				t.Errorf("seal (-want +got):\n%s", diff)
			}
			_, err = k.Store.Record(k.ctx, k.term, k.report(1))
			k.wantError("Record of the life before", err, broker.ErrStale)
		}},
		{"a rebirth from another life is stale", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			k.pinOn("a", 0, 1)
			_, err := k.Store.Rebirth(k.ctx, k.term, name(0), "another", "second")
			k.wantError("Rebirth", err, broker.ErrStale)
			_, err = k.Store.Rebirth(k.ctx, k.term, name(7), life(7), "second")
			k.wantError("Rebirth of an unknown instance", err, broker.ErrInstanceNotFound)
			k.pinned("a")
		}},
		{"a new life takes rooms when it has been looked at", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			_, err := k.Store.Rebirth(k.ctx, k.term, name(0), life(0), "second")
			k.noError("Rebirth", err)
			k.look(0, func(r *broker.LookReport) { r.Incarnation = "second" })
			k.refused(request("a", 1, 1))
			if p := k.claim(broker.ClaimRequest{Room: "a", Candidates: []broker.Candidate{{Instance: name(0), Incarnation: "second"}}}); p.Incarnation != "second" {
				t.Errorf("got %+v, want it in the second life", p)
			}
		}},
		{"Lost ends the incarnation's pins and returns them, once", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			b, a := k.pinOn("b", 0, 2), k.pinOn("a", 0, 1)
			k.pinOn("c", 1, 1)
			got, err := k.Store.Lost(k.ctx, k.term, name(0), life(0))
			k.noError("Lost", err)
			if diff := cmp.Diff([]broker.Pin{a, b}, byRoom(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if in := k.instance(0); !in.Lost || in.Pins != 0 || in.Reserved != 0 || in.State() != broker.StateLost {
				t.Errorf("got %+v, want it lost, without pins", in)
			}
			if stones := k.tombstones(0); len(stones) != 2 || stones[0].Cause != broker.CauseLost {
				t.Errorf("got tombstones %+v, want two of cause lost", stones)
			}
			k.pinned("c")
			got, err = k.Store.Lost(k.ctx, k.term, name(0), life(0))
			if err != nil || len(got) != 0 {
				t.Errorf("repeated: got %+v, %v; want none", got, err)
			}
		}},
		{"Lost ends pins on an instance that a broker remembered as lost", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			k.pinOn("a", 0, 1)
			r := recalled(0)
			r.Lost = true
			k.assert(0, r)
			got, err := k.Store.Lost(k.ctx, k.term, name(0), life(0))
			if err != nil || len(got) != 1 {
				t.Errorf("got %+v, %v; want the pin", got, err)
			}
			k.unpinned("a")
		}},
		{"Lost of another incarnation is stale", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			k.pinOn("a", 0, 1)
			_, err := k.Store.Lost(k.ctx, k.term, name(0), "another")
			k.wantError("Lost", err, broker.ErrStale)
			_, err = k.Store.Lost(k.ctx, k.term, name(7), life(7))
			k.wantError("Lost of an unknown instance", err, broker.ErrInstanceNotFound)
			if k.instance(0).Lost {
				t.Error("got it lost, want not")
			}
			k.pinned("a")
		}},
		{"a lost instance that answers again stays lost", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			_, err := k.Store.Lost(k.ctx, k.term, name(0), life(0))
			k.noError("Lost", err)
			if in := k.look(0); !in.Lost {
				t.Errorf("got %+v, want it lost", in)
			}
			k.refused(request("a", 1, 1))
		}},
		{"Forget removes an instance without a life, released or lost, but no other", nothing, func(t *testing.T, k *kit) {
			k.ready(3)
			k.look(3, failed)
			k.mark(2, broker.OwnerScaler)
			k.plan(3)
			k.plan(2, seal(2), broker.SealRequest{Instance: name(3)})
			_, err := k.Store.Lost(k.ctx, k.term, name(1), life(1))
			k.noError("Lost", err)
			k.look(4, failed)
			k.wantError("Forget of a living one", k.Store.Forget(k.ctx, k.term, name(0)), broker.ErrStale)
			for _, i := range []int{1, 2, 3, 4} {
				k.noError("Forget of "+name(i), k.Store.Forget(k.ctx, k.term, name(i)))
			}
			if f := k.facts(); len(f.Instances) != 1 || f.Instances[0].Name != name(0) {
				t.Errorf("got %+v, want only %s", f.Instances, name(0))
			}
			k.wantError("Forget of an unknown one", k.Store.Forget(k.ctx, k.term, name(1)), broker.ErrInstanceNotFound)
		}},
		{"Forget leaves an instance with a pin", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			k.pinOn("a", 1, 1)
			k.mark(1, broker.OwnerScaler)
			k.plan(2)
			r := seal(1)
			r.Occupied = true
			k.plan(1, r)
			k.wantError("Forget", k.Store.Forget(k.ctx, k.term, name(1)), broker.ErrStale)
			k.teardown("a")
			k.noError("Forget", k.Store.Forget(k.ctx, k.term, name(1)))
		}},
		{"a forgotten instance begins anew", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			k.mark(0, broker.OwnerHook)
			_, err := k.Store.Lost(k.ctx, k.term, name(0), life(0))
			k.noError("Lost", err)
			k.noError("Forget", k.Store.Forget(k.ctx, k.term, name(0)))
			in := k.look(0, func(r *broker.LookReport) { r.Incarnation = "second" })
			if in.Lost || len(in.Marks) != 0 || in.Incarnation != "second" {
				t.Errorf("got %+v, want nothing of before", in)
			}
		}},
	}
}
