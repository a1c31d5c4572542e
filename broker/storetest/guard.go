package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/roomscaler/roomscaler/broker"
)

// raise stores a number with a guard.
func (k *kit) raise(desired int, guard time.Duration) broker.Plan {
	k.t.Helper()
	p, err := k.put(broker.PlanUpdate{Desired: desired, GuardFor: guard})
	k.noError("PutPlan", err)
	return p
}

// takes checks which of the instances take a room now.
func (k *kit) takes(want ...int) {
	k.t.Helper()
	open := map[int]bool{}
	for _, i := range want {
		open[i] = true
	}
	for i := range len(k.facts().Instances) {
		room := fmt.Sprint("try-", i)
		_, _, err := k.Store.Claim(k.ctx, k.term, broker.ClaimRequest{Room: room, Candidates: all(i + 1)[i:]})
		if got := err == nil; got != open[i] {
			k.t.Errorf("%s takes a room: got %v (%v), want %v", name(i), got, err, open[i])
		}
		if err == nil {
			k.teardown(room)
		}
	}
}

func guardClauses() []clause {
	return []clause{
		{"an ordinal at or above the plan's number takes no room", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			k.takes(0, 1)
			k.plan(2)
			k.look(2)
			k.look(3)
			k.takes(0, 1)
			k.plan(3)
			k.takes(0, 1, 2)
		}},
		{"after a raise the number before it stays the limit for the guard's time", aClock, func(t *testing.T, k *kit) {
			k.ready(4)
			k.lower(4, 2)
			p := k.raise(4, 20*time.Second)
			if diff := cmp.Diff([]broker.Guard{{Below: 2, Until: p.StoredAt + 20_000}}, p.Guards); diff != "" {
				t.Errorf("guards (-want +got):\n%s", diff)
			}
			k.unsealAll(4)
			k.pass(18 * time.Second)
			k.takes(0, 1)
			k.pass(2 * time.Second)
			k.takes(0, 1, 2, 3)
		}},
		{"each of several guards holds for its own time", aClock, func(t *testing.T, k *kit) {
			k.ready(6)
			k.lower(6, 1)
			k.raise(2, 20*time.Second)
			k.pass(8 * time.Second)
			k.raise(4, 20*time.Second)
			k.pass(8 * time.Second)
			k.raise(6, 20*time.Second)
			k.unsealAll(6)
			k.takes(0)
			k.pass(4 * time.Second)
			k.takes(0, 1)
			k.pass(8 * time.Second)
			k.takes(0, 1, 2, 3)
			k.pass(8 * time.Second)
			k.takes(0, 1, 2, 3, 4, 5)
		}},
		{"a guard that another undercuts and outlasts is left out", aClock, func(t *testing.T, k *kit) {
			k.ready(4)
			k.lower(4, 2)
			k.raise(4, 5*time.Second)
			k.unsealAll(4)
			for i := range 4 {
				k.mark(i, broker.OwnerScaler)
			}
			_, err := k.put(broker.PlanUpdate{Desired: 1, Seal: []broker.SealRequest{seal(1), seal(2), seal(3)}})
			k.noError("PutPlan", err)
			p := k.raise(4, 30*time.Second)
			if diff := cmp.Diff([]broker.Guard{{Below: 1, Until: p.StoredAt + 30_000}}, p.Guards); diff != "" {
				t.Errorf("guards (-want +got):\n%s", diff)
			}
		}},
		{"a shorter guard does not shorten one that holds", aClock, func(t *testing.T, k *kit) {
			k.ready(3)
			k.lower(3, 1)
			k.raise(2, 30*time.Second)
			k.raise(3, 5*time.Second)
			k.unsealAll(3)
			k.pass(28 * time.Second)
			k.takes(0)
			k.pass(2 * time.Second)
			k.takes(0, 1, 2)
		}},
		{"a guard that has run out does not count for the next", aClock, func(t *testing.T, k *kit) {
			k.ready(3)
			k.lower(3, 1)
			k.raise(2, 5*time.Second)
			k.pass(6 * time.Second)
			p := k.raise(3, 5*time.Second)
			if diff := cmp.Diff([]broker.Guard{{Below: 2, Until: p.StoredAt + 5_000}}, p.Guards); diff != "" {
				t.Errorf("guards (-want +got):\n%s", diff)
			}
		}},
		{"plans that do not rise leave a guard as it is", aClock, func(t *testing.T, k *kit) {
			k.ready(3)
			k.lower(3, 1)
			first := k.raise(3, 20*time.Second)
			k.pass(5 * time.Second)
			k.unsealAll(3)
			p := k.raise(3, 20*time.Second)
			if diff := cmp.Diff(first.Guards, p.Guards); diff != "" {
				t.Errorf("the same number (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(first.Guards, k.raise(9, 0).Guards); diff != "" {
				t.Errorf("a raise without a guard (-want +got):\n%s", diff)
			}
			k.takes(0)
		}},
		{"the lowest number that was asserted is the one before a term's first plan", aClock, func(t *testing.T, k *kit) {
			k.begin()
			for _, limit := range []int{3, 0, 1, 2} {
				k.noError("Assert", k.Store.Assert(k.ctx, k.term, broker.Assertion{Limit: limit}))
			}
			k.ready(4)
			k.takes(0)
			p := k.raise(4, 20*time.Second)
			if diff := cmp.Diff([]broker.Guard{{Below: 1, Until: p.StoredAt + 20_000}}, p.Guards); diff != "" {
				t.Errorf("guards (-want +got):\n%s", diff)
			}
			k.takes(0)
			k.pass(20 * time.Second)
			k.takes(0, 1, 2, 3)
		}},
		{"the first plan of a term has no number before it to guard if none was asserted", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			k.raise(2, time.Hour)
			k.takes(0, 1)
		}},
	}
}

// lower brings the number down from n to desired, with the seals it needs.
func (k *kit) lower(n, desired int) {
	k.t.Helper()
	k.plan(n)
	var seals []broker.SealRequest
	for i := desired; i < n; i++ {
		k.mark(i, broker.OwnerScaler)
		seals = append(seals, seal(i))
	}
	k.plan(desired, seals...)
}

// unsealAll stores the number again and takes all seals and scaler's marks off.
func (k *kit) unsealAll(desired int) {
	k.t.Helper()
	var names []string
	for _, in := range k.facts().Instances {
		names = append(names, in.Name)
	}
	_, err := k.put(broker.PlanUpdate{Desired: desired, Unseal: names})
	k.noError("PutPlan", err)
	for i := range names {
		k.unmark(i, broker.OwnerScaler)
	}
}
