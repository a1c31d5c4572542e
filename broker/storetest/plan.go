package storetest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/broker"
)

func planClauses() []clause {
	return []clause{
		{"a plan is stored and read back", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			body := []byte("{\x00\xff}")
			got, err := k.Store.PutPlan(k.ctx, k.term, broker.PlanUpdate{Desired: 3, Target: 25, EmptyWhen: "rooms", Body: body})
			k.noError("PutPlan", err)
			body[0] = 'x'
			want := broker.Plan{
				Version: got.Version, Desired: 3, Target: 25, EmptyWhen: "rooms", Body: []byte("{\x00\xff}"),
				StoredAt: got.StoredAt,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Version != 1 || got.StoredAt > k.now() || got.StoredAt == broker.Never {
				t.Errorf("got %+v, want version 1, stored now, without guard", got)
			}
			got.Body[0] = 'y'
			if diff := cmp.Diff(want, k.facts().Plan); diff != "" {
				t.Errorf("in Facts (-want +got):\n%s", diff)
			}
		}},
		{"a plan is stored only over the version it names", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			_, err := k.Store.PutPlan(k.ctx, k.term, broker.PlanUpdate{IfVersion: 1, Desired: 5})
			k.wantError("over a plan that is not there", err, broker.ErrVersion)
			first := k.plan(2)
			second := k.plan(3)
			if second.Version != first.Version+1 {
				t.Errorf("got version %d after %d, want the next", second.Version, first.Version)
			}
			for _, v := range []int64{0, first.Version, second.Version + 1} {
				_, err = k.Store.PutPlan(k.ctx, k.term, broker.PlanUpdate{IfVersion: v, Desired: 5})
				k.wantError("over another version", err, broker.ErrVersion)
			}
			if got := k.facts().Plan.Desired; got != 3 {
				t.Errorf("got desired %d, want 3", got)
			}
		}},
		{"the same or a greater number needs no seal", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			k.plan(2)
			k.plan(2)
			k.plan(9)
		}},
		{"a lower number releases every instance from there on", nothing, func(t *testing.T, k *kit) {
			k.ready(4)
			k.plan(4)
			k.mark(2, broker.OwnerScaler)
			k.mark(3, broker.OwnerScaler)
			p := k.plan(2, seal(3), seal(2))
			for i, want := range []bool{false, false, true, true} {
				in := k.instance(i)
				if (in.Seal != nil) != want {
					t.Errorf("%s: got seal %+v, want one: %v", in.Name, in.Seal, want)
				}
				if want && in.Seal != nil && *in.Seal != (broker.Seal{Version: p.Version, At: p.StoredAt}) {
					t.Errorf("%s: got %+v, want version %d at %v", in.Name, *in.Seal, p.Version, p.StoredAt)
				}
				if want && in.State() != broker.StateReleased {
					t.Errorf("%s: got state %q, want released", in.Name, in.State())
				}
			}
		}},
		{"an instance that is not named refuses a lower number: missing", nothing, func(t *testing.T, k *kit) {
			k.ready(3)
			k.plan(3)
			k.mark(1, broker.OwnerScaler)
			k.mark(2, broker.OwnerScaler)
			k.sealRefused(broker.PlanUpdate{Desired: 1, Seal: []broker.SealRequest{seal(2)}}, broker.SealRefusal{Instance: name(1), Ordinal: 1, Why: "missing"})
		}},
		{"another incarnation refuses it: incarnation", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			k.plan(2)
			k.mark(1, broker.OwnerScaler)
			for _, incarnation := range []string{"another", ""} {
				k.sealRefused(broker.PlanUpdate{Desired: 1, Seal: []broker.SealRequest{{Instance: name(1), Incarnation: incarnation}}},
					broker.SealRefusal{Instance: name(1), Ordinal: 1, Why: "incarnation"})
			}
		}},
		{"an instance without the scaler's mark refuses it: mark", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			k.plan(2)
			k.mark(1, broker.OwnerHook)
			k.sealRefused(broker.PlanUpdate{Desired: 1, Seal: []broker.SealRequest{seal(1)}}, broker.SealRefusal{Instance: name(1), Ordinal: 1, Why: "mark"})
		}},
		{"a pin refuses it: pins (G3)", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			k.plan(2)
			k.pinOn("a", 1, 0)
			k.mark(1, broker.OwnerScaler)
			k.sealRefused(broker.PlanUpdate{Desired: 1, Seal: []broker.SealRequest{seal(1)}}, broker.SealRefusal{Instance: name(1), Ordinal: 1, Why: "pins", Pins: 1})
			k.teardown("a")
			k.plan(1, seal(1))
		}},
		{"pins do not hinder where the grace is over", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			k.plan(2)
			k.pinOn("a", 1, 1)
			k.mark(1, broker.OwnerScaler)
			r := seal(1)
			r.Occupied = true
			k.plan(1, r)
			if in := k.instance(1); in.Seal == nil || in.Pins != 1 {
				t.Errorf("got %+v, want it released with its pin", in)
			}
		}},
		{"all refusals are told by ordinal, and nothing is released", nothing, func(t *testing.T, k *kit) {
			k.ready(4)
			k.plan(4)
			for _, i := range []int{0, 1, 3} {
				k.pinOn("room-"+name(i), i, 1)
				k.mark(i, broker.OwnerScaler)
			}
			k.sealRefused(broker.PlanUpdate{Desired: 0, Seal: []broker.SealRequest{seal(3), seal(2), {Instance: name(1), Incarnation: life(1), Occupied: true}}},
				broker.SealRefusal{Instance: name(0), Ordinal: 0, Why: "missing", Pins: 1},
				broker.SealRefusal{Instance: name(2), Ordinal: 2, Why: "mark"},
				broker.SealRefusal{Instance: name(3), Ordinal: 3, Why: "pins", Pins: 1})
		}},
		{"an instance that never answered is released without a mark", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			k.plan(2)
			k.look(1, failed)
			k.sealRefused(broker.PlanUpdate{Desired: 1, Seal: []broker.SealRequest{seal(1)}}, broker.SealRefusal{Instance: name(1), Ordinal: 1, Why: "incarnation"})
			k.plan(1, broker.SealRequest{Instance: name(1)})
			if k.instance(1).Seal == nil {
				t.Error("got no seal, want one")
			}
		}},
		{"an instance with a remembered life has answered", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			k.plan(2)
			k.assert(0, recalled(1))
			k.sealRefused(broker.PlanUpdate{Desired: 1, Seal: []broker.SealRequest{seal(1)}}, broker.SealRefusal{Instance: name(1), Ordinal: 1, Why: "mark"})
		}},
		{"lost and released instances need not be named", nothing, func(t *testing.T, k *kit) {
			k.ready(4)
			k.plan(4)
			k.mark(3, broker.OwnerScaler)
			released := k.plan(3, seal(3))
			_, err := k.Store.Lost(k.ctx, k.term, name(2), life(2))
			k.noError("Lost", err)
			k.mark(1, broker.OwnerScaler)
			k.plan(1, seal(1))
			if got := k.instance(3).Seal; got == nil || got.Version != released.Version {
				t.Errorf("got seal %+v, want that of version %d", got, released.Version)
			}
			if got := k.instance(2).Seal; got != nil {
				t.Errorf("a lost instance: got seal %+v, want none", got)
			}
		}},
		{"an instance below the number is not released though it is named", nothing, func(t *testing.T, k *kit) {
			k.ready(3)
			k.plan(3)
			for i := range 3 {
				k.mark(i, broker.OwnerScaler)
			}
			k.plan(2, seal(0), seal(1), seal(2))
			if k.instance(0).Seal != nil || k.instance(1).Seal != nil {
				t.Error("got a seal below the number, want none")
			}
		}},
		{"a named instance at or above a number that is not lower is released as well", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			k.plan(1)
			k.look(1)
			k.look(2)
			k.sealRefused(broker.PlanUpdate{Desired: 1, Seal: []broker.SealRequest{seal(1)}}, broker.SealRefusal{Instance: name(1), Ordinal: 1, Why: "mark"})
			k.mark(1, broker.OwnerScaler)
			k.plan(1, seal(1))
			if k.instance(1).Seal == nil || k.instance(2).Seal != nil {
				t.Error("want a seal on the named instance alone")
			}
		}},
		{"the first plan of a term below the floor needs seals like any lower number", nothing, func(t *testing.T, k *kit) {
			k.ready(3)
			k.mark(1, broker.OwnerScaler)
			k.mark(2, broker.OwnerScaler)
			k.sealRefused(broker.PlanUpdate{Desired: 1, Seal: []broker.SealRequest{seal(2)}}, broker.SealRefusal{Instance: name(1), Ordinal: 1, Why: "missing"})
			k.plan(1, seal(1), seal(2))
		}},
		{"the first plan of a term cannot take away ordinals of which nothing is known: floor (G6)", nothing, func(t *testing.T, k *kit) {
			k.begin()
			k.look(0)
			k.assert(4)
			k.finish()
			k.sealRefused(broker.PlanUpdate{Desired: 3}, broker.SealRefusal{Ordinal: 3, Why: "floor"})
			k.sealRefused(broker.PlanUpdate{Desired: 1}, broker.SealRefusal{Ordinal: 1, Why: "floor"})
			k.plan(4)
			k.plan(3)
		}},
		{"the refusal for an unknown ordinal stands in order among the others", nothing, func(t *testing.T, k *kit) {
			k.begin()
			k.look(0)
			k.look(2)
			k.finish()
			k.sealRefused(broker.PlanUpdate{Desired: 0}, broker.SealRefusal{Instance: name(0), Ordinal: 0, Why: "missing"},
				broker.SealRefusal{Ordinal: 1, Why: "floor"}, broker.SealRefusal{Instance: name(2), Ordinal: 2, Why: "missing"})
		}},
		{"Unseal takes the seal off an instance below the number, and no other", nothing, func(t *testing.T, k *kit) {
			k.ready(3)
			k.plan(3)
			k.mark(1, broker.OwnerScaler)
			k.mark(2, broker.OwnerScaler)
			k.plan(1, seal(1), seal(2))
			_, err := k.put(broker.PlanUpdate{Desired: 2, Unseal: []string{name(1), name(2), name(7)}})
			k.noError("PutPlan", err)
			if k.instance(1).Seal != nil || k.instance(2).Seal == nil {
				t.Errorf("got seals %+v and %+v, want only that of %s", k.instance(1).Seal, k.instance(2).Seal, name(2))
			}
			k.unmark(1, broker.OwnerScaler)
		}},
		{"a released instance stays so in later plans", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			k.plan(2)
			k.mark(1, broker.OwnerScaler)
			k.plan(1, seal(1))
			k.plan(5)
			if k.instance(1).Seal == nil {
				t.Error("got no seal, want one until it is taken off")
			}
		}},
	}
}

// sealRefused checks that an update is refused for exactly these reasons and that it
// changed nothing.
func (k *kit) sealRefused(u broker.PlanUpdate, want ...broker.SealRefusal) {
	k.t.Helper()
	before := k.facts()
	_, err := k.put(u)
	var refused *broker.SealError
	if !errors.As(err, &refused) {
		k.t.Fatalf("PutPlan: got %v, want a *SealError", err)
	}
	if diff := cmp.Diff(want, refused.Refusals); diff != "" {
		k.t.Errorf("refusals (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, k.facts(), sameMoment); diff != "" {
		k.t.Errorf("facts (-want +got):\n%s", diff)
	}
}
