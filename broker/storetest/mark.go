package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/broker"
)

func markClauses() []clause {
	return []clause{
		{"the first call of an owner fixes since and grace", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			in, err := k.Store.Mark(k.ctx, k.term, name(0), broker.MarkRequest{Owner: broker.OwnerHook, Reason: "stop", Grace: time.Hour})
			k.noError("Mark", err)
			first, ok := in.Mark(broker.OwnerHook)
			if !ok || first.Reason != "stop" || first.Grace != time.Hour || first.Since > k.now() || first.Age(k.now()) > time.Minute {
				t.Fatalf("got %+v, want the mark, set now", first)
			}
			k.tick()
			for _, grace := range []time.Duration{time.Minute, 2 * time.Hour, 0} {
				in, err = k.Store.Mark(k.ctx, k.term, name(0), broker.MarkRequest{Owner: broker.OwnerHook, Reason: "stop", Grace: grace})
				k.noError("Mark", err)
				if diff := cmp.Diff([]broker.Mark{first}, in.Marks); diff != "" {
					t.Errorf("repeated with %v (-want +got):\n%s", grace, diff)
				}
			}
		}},
		{"a mark set without a deadline keeps none", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			k.mark(0, broker.OwnerOperator)
			in, err := k.Store.Mark(k.ctx, k.term, name(0), broker.MarkRequest{Owner: broker.OwnerOperator, Grace: time.Second})
			k.noError("Mark", err)
			if m, _ := in.Mark(broker.OwnerOperator); m.Grace != 0 {
				t.Errorf("got grace %v, want none", m.Grace)
			}
		}},
		{"each owner's mark and clock are its own", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			for i, owner := range broker.Owners {
				_, err := k.Store.Mark(k.ctx, k.term, name(0), broker.MarkRequest{Owner: owner, Reason: string(owner), Grace: time.Duration(i) * time.Hour})
				k.noError("Mark", err)
				k.tick()
			}
			marks := k.instance(0).Marks
			for i, m := range marks {
				if i > 0 && marks[i-1].Owner >= m.Owner {
					t.Errorf("got %s before %s, want them by owner", marks[i-1].Owner, m.Owner)
				}
			}
			if len(marks) != len(broker.Owners) {
				t.Fatalf("got %d marks, want %d", len(marks), len(broker.Owners))
			}
			in := k.unmark(0, broker.OwnerScaler)
			for _, m := range marks {
				got, ok := in.Mark(m.Owner)
				if ok == (m.Owner == broker.OwnerScaler) || ok && got != m {
					t.Errorf("%s: got %+v, there %v; want every other as it was", m.Owner, got, ok)
				}
			}
		}},
		{"an unmarked instance that is marked again has a new mark", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			k.mark(0, broker.OwnerHook)
			k.unmark(0, broker.OwnerHook)
			k.tick()
			from := k.now()
			if m, _ := k.mark(0, broker.OwnerHook).Mark(broker.OwnerHook); m.Since < from {
				t.Errorf("got since %v, want from %v on", m.Since, from)
			}
		}},
		{"removing a mark that is not there is no error", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			k.mark(0, broker.OwnerHook)
			if in := k.unmark(0, broker.OwnerScaler); len(in.Marks) != 1 {
				t.Errorf("got %+v, want the other owner's mark", in.Marks)
			}
		}},
		{"an instance that is not known can neither be marked nor unmarked", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			_, err := k.Store.Mark(k.ctx, k.term, name(7), broker.MarkRequest{Owner: broker.OwnerHook})
			k.wantError("Mark", err, broker.ErrInstanceNotFound)
			_, err = k.Store.Unmark(k.ctx, k.term, name(7), broker.OwnerHook)
			k.wantError("Unmark", err, broker.ErrInstanceNotFound)
		}},
		{"no mark of a released instance can be removed", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			k.mark(1, broker.OwnerScaler)
			k.plan(2)
			k.plan(1, seal(1))
			_, err := k.Store.Unmark(k.ctx, k.term, name(1), broker.OwnerScaler)
			k.wantError("Unmark", err, broker.ErrReleased)
			if _, ok := k.instance(1).Mark(broker.OwnerScaler); !ok {
				t.Error("got the mark removed, want it kept")
			}
			if in := k.mark(1, broker.OwnerHook); len(in.Marks) != 2 {
				t.Errorf("got %+v, want another owner to be able to mark it", in.Marks)
			}
		}},
		{"an instance can be marked while rebuilding", nothing, func(t *testing.T, k *kit) {
			k.begin()
			k.look(0)
			k.mark(0, broker.OwnerHook)
			k.finish()
			k.refused(request("a", 1, 1))
		}},
	}
}

func factsClauses() []clause {
	return []clause{
		{"instances come by ordinal, then name", nothing, func(t *testing.T, k *kit) {
			k.begin()
			for _, i := range []int{10, 2, 9} {
				k.look(i)
			}
			k.look(2, func(r *broker.LookReport) { r.Instance = "a" })
			var got []string
			for _, in := range k.facts().Instances {
				got = append(got, in.Name)
			}
			if diff := cmp.Diff([]string{"a", name(2), name(9), name(10)}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}},
		{"facts carry the state and an empty plan before there is one", nothing, func(t *testing.T, k *kit) {
			k.ready(0)
			f := k.facts()
			if f.Term != k.term || f.Phase != broker.Ready || f.Now == 0 || f.Plan.Version != 0 || len(f.Instances) != 0 {
				t.Errorf("got %+v, want a ready term without instances and plan", f)
			}
		}},
		{"facts count pins and reservations by instance", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			k.look(0, sessions(3))
			k.pinOn("a", 0, 2)
			k.pinOn("b", 0, 5)
			k.pinOn("c", 1, 1)
			a, b := k.instance(0), k.instance(1)
			if a.Pins != 2 || a.Reserved != 7 || a.Load() != 10 || b.Pins != 1 || b.Reserved != 1 {
				t.Errorf("got %d pins, %d reserved, load %d and %d, %d; want 2, 7, 10 and 1, 1", a.Pins, a.Reserved, a.Load(), b.Pins, b.Reserved)
			}
		}},
	}
}
