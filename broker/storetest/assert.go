package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/broker"
)

// recalled is what a broker remembers of instance i.
func recalled(i int, marks ...broker.AssertedMark) broker.AssertedInstance {
	return broker.AssertedInstance{Name: name(i), Ordinal: i, Address: address(i), Incarnation: life(i), Marks: marks}
}

func (k *kit) assert(floor int, instances ...broker.AssertedInstance) {
	k.t.Helper()
	k.noError("Assert", k.Store.Assert(k.ctx, k.term, broker.Assertion{Floor: floor, Instances: instances}))
}

func assertClauses() []clause {
	return []clause{
		{"what a broker remembers becomes known", nothing, func(t *testing.T, k *kit) {
			k.begin()
			sealed, lost := recalled(1), recalled(2)
			sealed.Released, lost.Lost = true, true
			k.assert(0, recalled(0, broker.AssertedMark{Owner: broker.OwnerHook, Reason: "stop", Grace: time.Hour, Elapsed: 20 * time.Minute}), sealed, lost)
			in := k.instance(0)
			if in.Ordinal != 0 || in.Address != address(0) || in.Incarnation != life(0) || in.LookBegin != broker.Never || in.Answered || in.EmptySince != broker.Never {
				t.Errorf("got %+v, want what was asserted, never looked at and unanswered", in)
			}
			if got := k.instance(1).Seal; got == nil {
				t.Error("a released instance: got no seal")
			}
			if !k.instance(2).Lost || k.instance(0).Lost {
				t.Error("got another instance lost than the one asserted")
			}
			if in.ListedAt == broker.Never {
				t.Error("got ListedAt Never: an instance that nobody lists could never be taken for lost")
			}
		}},
		{"a mark goes on from the time it had run", nothing, func(t *testing.T, k *kit) {
			k.begin()
			k.assert(0, recalled(0, broker.AssertedMark{Owner: broker.OwnerHook, Reason: "stop", Grace: time.Hour, Elapsed: 20 * time.Minute}))
			now := k.now()
			m, ok := k.instance(0).Mark(broker.OwnerHook)
			if !ok || m.Reason != "stop" || m.Grace != time.Hour {
				t.Fatalf("got %+v, want a mark with its reason and its whole grace", m)
			}
			if got := m.Age(now); got < 20*time.Minute || got > 21*time.Minute {
				t.Errorf("got age %v, want 20m", got)
			}
		}},
		{"repeating it changes nothing", nothing, func(t *testing.T, k *kit) {
			k.begin()
			r := recalled(0, broker.AssertedMark{Owner: broker.OwnerHook, Reason: "stop", Grace: time.Hour, Elapsed: time.Minute})
			r.Released = true
			k.assert(3, r)
			want := k.facts()
			k.tick()
			r.Marks[0].Elapsed += time.Minute
			r.Ordinal, r.Address, r.Marks[0].Reason = 7, "http://127.0.0.9", "other"
			k.assert(2, r)
			if diff := cmp.Diff(want, k.facts(), sameMoment); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
		}},
		{"of two remaining times the longer counts", nothing, func(t *testing.T, k *kit) {
			k.begin()
			at := func(owner broker.Owner, grace, elapsed time.Duration) broker.AssertedMark {
				return broker.AssertedMark{Owner: owner, Grace: grace, Elapsed: elapsed}
			}
			k.assert(0, recalled(0, at(broker.OwnerHook, time.Hour, 50*time.Minute), at(broker.OwnerOperator, time.Hour, 0), at(broker.OwnerRollout, time.Hour, 0)))
			k.assert(0, recalled(0, at(broker.OwnerHook, 2*time.Hour, 90*time.Minute), at(broker.OwnerOperator, time.Hour, 59*time.Minute), at(broker.OwnerRollout, 0, 0)))
			in, now := k.instance(0), k.now()
			for owner, want := range map[broker.Owner]time.Duration{broker.OwnerHook: 30 * time.Minute, broker.OwnerOperator: time.Hour} {
				m, _ := in.Mark(owner)
				if got, ends := m.Remaining(now); !ends || got > want || got < want-time.Minute {
					t.Errorf("%s: got %v remaining, want %v", owner, got, want)
				}
			}
			m, _ := in.Mark(broker.OwnerRollout)
			if _, ends := m.Remaining(now); ends {
				t.Error("rollout: got a deadline, want none, the longest of all")
			}
		}},
		{"another broker adds what was not there", nothing, func(t *testing.T, k *kit) {
			k.begin()
			k.assert(0, recalled(0))
			more := recalled(0, broker.AssertedMark{Owner: broker.OwnerScaler})
			more.Released = true
			k.assert(0, more, recalled(1))
			in := k.instance(0)
			if _, ok := in.Mark(broker.OwnerScaler); !ok || in.Seal == nil {
				t.Errorf("got %+v, want the mark and the seal", in)
			}
			if got := len(k.facts().Instances); got != 2 {
				t.Errorf("got %d instances, want 2", got)
			}
		}},
		{"marks and loss of another incarnation are left out", nothing, func(t *testing.T, k *kit) {
			k.begin()
			k.look(0)
			r := recalled(0, broker.AssertedMark{Owner: broker.OwnerScaler})
			r.Incarnation, r.Lost = "another", true
			k.assert(0, r)
			if in := k.instance(0); len(in.Marks) != 0 || in.Lost || in.Incarnation != life(0) {
				t.Errorf("got %+v, want the recorded incarnation without mark and loss", in)
			}
		}},
		{"marks made before any incarnation was known hold for the first", nothing, func(t *testing.T, k *kit) {
			k.begin()
			r := recalled(0, broker.AssertedMark{Owner: broker.OwnerScaler})
			r.Incarnation = ""
			k.assert(0, r)
			if in := k.look(0); len(in.Marks) != 1 || in.Incarnation != life(0) {
				t.Errorf("got %+v, want the first incarnation with the mark", in)
			}
		}},
		{"a good look of the remembered incarnation is taken, of another is stale", nothing, func(t *testing.T, k *kit) {
			k.begin()
			k.assert(0, recalled(0))
			_, err := k.Store.Record(k.ctx, k.term, k.report(0, func(r *broker.LookReport) { r.Incarnation = "another" }))
			k.wantError("Record of another", err, broker.ErrStale)
			k.look(0, sessions(3))
			if got := k.instance(0).Sessions; got != 3 {
				t.Errorf("got %d sessions, want 3", got)
			}
		}},
		{"the floor is the greatest asserted, and above every known instance without a seal", nothing, func(t *testing.T, k *kit) {
			k.begin()
			sealed := recalled(9)
			sealed.Released = true
			k.assert(0, recalled(0), recalled(4), sealed)
			if got := k.state().Floor; got != 5 {
				t.Errorf("got floor %d, want 5", got)
			}
			k.assert(7)
			k.assert(6)
			if got := k.state().Floor; got != 7 {
				t.Errorf("got floor %d, want 7", got)
			}
			k.look(11)
			k.assert(0)
			if got := k.state().Floor; got != 12 {
				t.Errorf("with one found meanwhile: got floor %d, want 12", got)
			}
		}},
		{"a seal that a broker remembers does not lower the floor below an instance with rooms", nothing, func(t *testing.T, k *kit) {
			k.begin()
			sealed := recalled(4)
			sealed.Released = true // when that broker last looked: it may be off since
			k.assert(0, recalled(0), sealed)
			if got := k.state().Floor; got != 1 {
				t.Errorf("before the rooms are known: got floor %d, want 1", got)
			}
			k.look(0)
			k.look(4)
			k.adoptOne(4, broker.Adoption{Room: "a", Epoch: 7})
			if got := k.finish().Floor; got != 5 {
				t.Errorf("got floor %d, want 5", got)
			}
			if _, err := k.put(broker.PlanUpdate{Desired: 1}); err == nil {
				t.Error("a first number below it was stored")
			}
		}},
		{"an asserted instance has not answered", nothing, func(t *testing.T, k *kit) {
			k.begin()
			k.assert(0, recalled(0))
			k.stillRebuilding(0)
			k.look(0)
			k.finish()
		}},
		{"an asserted instance counts as known within the hold", aClock, func(t *testing.T, k *kit) {
			k.begin()
			k.assert(0, recalled(0))
			k.look(0)
			k.pass(2 * time.Second)
			k.stillRebuilding(5 * time.Second)
		}},
	}
}
