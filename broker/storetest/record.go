package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/broker"
)

func recordClauses() []clause {
	at := func(begin broker.PoolTime) func(*broker.LookReport) {
		return func(r *broker.LookReport) { r.Begin = begin }
	}
	return []clause{
		{"a first good look makes the instance known with its facts", nothing, func(t *testing.T, k *kit) {
			k.begin()
			k.tick()
			r := k.report(3, func(r *broker.LookReport) {
				r.Sessions, r.Participants, r.Rooms, r.StringIDs, r.Advice = 5, 4, 2, true, "mind the secret"
			})
			got, err := k.Store.Record(k.ctx, k.term, r)
			k.noError("Record", err)
			want := broker.Instance{
				Name: name(3), Ordinal: 3, Address: address(3), Incarnation: life(3), Sessions: 5, Participants: 4, Rooms: 2, StringIDs: true,
				LookBegin: r.Begin, EmptySince: broker.Never, OldestPin: broker.Never, FirstSeen: got.FirstSeen, ListedAt: got.ListedAt,
				LifeSince: got.LifeSince, Advice: "mind the secret", FaultSince: broker.Never, Answered: true,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, k.instance(3)); diff != "" {
				t.Errorf("in Facts (-want +got):\n%s", diff)
			}
			for what, at := range map[string]broker.PoolTime{"FirstSeen": got.FirstSeen, "ListedAt": got.ListedAt, "LifeSince": got.LifeSince} {
				if at < r.Begin || at > k.now() {
					t.Errorf("%s: got %v, want now", what, at)
				}
			}
		}},
		{"a failed look makes the instance known without a life", nothing, func(t *testing.T, k *kit) {
			k.begin()
			in := k.look(0, failed, sessions(9), vacant)
			if in.Incarnation != "" || in.LookBegin != broker.Never || in.LifeSince != broker.Never || in.EmptySince != broker.Never || in.Sessions != 0 {
				t.Errorf("got %+v, want no facts", in)
			}
			if in.Fault != broker.FaultTimeout || in.Advice != "look at it" || in.Failures != 1 || in.FaultSince == broker.Never {
				t.Errorf("got fault %q (%s), %d in a row since %v; want the first timeout", in.Fault, in.Advice, in.Failures, in.FaultSince)
			}
			if in.State() != broker.StateStarting {
				t.Errorf("got state %q, want starting", in.State())
			}
		}},
		{"failures count and never replace facts (G4)", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			good := k.look(0, sessions(5), vacant)
			first := k.look(0, failed, sessions(0))
			second := k.look(0, failed, func(r *broker.LookReport) { r.Fault = broker.FaultRefused })
			if first.Failures != 1 || second.Failures != 2 || second.Fault != broker.FaultRefused || second.FaultSince != first.FaultSince {
				t.Errorf("got %d failures since %v, then %d since %v with %q", first.Failures, first.FaultSince, second.Failures, second.FaultSince, second.Fault)
			}
			good.Fault, good.Advice, good.Failures, good.FaultSince, good.ListedAt = second.Fault, second.Advice, 2, second.FaultSince, second.ListedAt
			if diff := cmp.Diff(good, second); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
			if again := k.look(0, sessions(6)); again.Fault != "" || again.Failures != 0 || again.FaultSince != broker.Never || again.Advice != "" || again.Sessions != 6 {
				t.Errorf("after a good look: got %+v, want no fault", again)
			}
		}},
		{"only a good look moves an instance to another address (G1)", nothing, func(t *testing.T, k *kit) {
			moved := func(address string) func(*broker.LookReport) {
				return func(r *broker.LookReport) { r.Address = address }
			}
			k.begin()
			k.look(0, failed, moved("http://first"))
			if got := k.look(0, failed, moved("http://second")).Address; got != "http://second" {
				t.Errorf("before any good look: got %s, want the last one listed", got)
			}
			k.look(0, moved("http://third"))
			if got := k.look(0, failed, moved("http://fourth")).Address; got != "http://third" {
				t.Errorf("after a failed look elsewhere: got %s, want where it was found", got)
			}
			early := k.instance(0).LookBegin
			if got := k.look(0, moved("http://fifth")).Address; got != "http://fifth" {
				t.Errorf("after a good look elsewhere: got %s, want that", got)
			}
			if got := k.look(0, moved("http://third"), at(early)).Address; got != "http://fifth" {
				t.Errorf("after a good look told late: got %s, want that of the later", got)
			}
		}},
		{"the look with the later begin wins", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			early := k.now()
			k.look(0, sessions(5))
			late := k.instance(0).LookBegin
			in, err := k.Store.Record(k.ctx, k.term, k.report(0, at(early), sessions(2), vacant))
			k.noError("Record", err)
			if in.Sessions != 5 || in.LookBegin != late || in.EmptySince != broker.Never {
				t.Errorf("got %d sessions of %v, empty since %v; want 5 of %v", in.Sessions, in.LookBegin, in.EmptySince, late)
			}
		}},
		{"the same look told again replaces itself", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			in := k.look(0, sessions(5))
			in, err := k.Store.Record(k.ctx, k.term, k.report(0, at(in.LookBegin), sessions(0), vacant))
			k.noError("Record", err)
			if in.Sessions != 0 || in.EmptySince != in.LookBegin {
				t.Errorf("got %d sessions, empty since %v; want the second report", in.Sessions, in.EmptySince)
			}
		}},
		{"a failed look that began before a good one says nothing", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			early := k.now()
			k.look(0, sessions(5))
			in, err := k.Store.Record(k.ctx, k.term, k.report(0, failed, at(early)))
			k.noError("Record", err)
			if in.Fault != "" || in.Failures != 0 {
				t.Errorf("got fault %q, %d failures; want none", in.Fault, in.Failures)
			}
		}},
		{"a good look that began before a failed one brings facts and leaves the fault", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			k.tick()
			between := k.now()
			k.look(0, failed)
			in, err := k.Store.Record(k.ctx, k.term, k.report(0, at(between), sessions(3)))
			k.noError("Record", err)
			if in.Sessions != 3 || in.Fault != broker.FaultTimeout || in.Failures != 1 {
				t.Errorf("got %d sessions, fault %q, %d failures; want 3, timeout, 1", in.Sessions, in.Fault, in.Failures)
			}
		}},
		{"a look of another incarnation is stale and changes nothing", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			k.pinOn("a", 0, 1)
			want := k.facts()
			k.tick()
			for _, incarnation := range []string{"another", ""} {
				_, err := k.Store.Record(k.ctx, k.term, k.report(0, sessions(9), func(r *broker.LookReport) { r.Incarnation, r.Ordinal = incarnation, 4 }))
				k.wantError("Record", err, broker.ErrStale)
			}
			if diff := cmp.Diff(want, k.facts(), sameMoment); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}},
		{"the first incarnation keeps the marks that are there", nothing, func(t *testing.T, k *kit) {
			k.begin()
			k.look(0, failed)
			k.mark(0, broker.OwnerHook)
			if in := k.look(0); in.Incarnation != life(0) || len(in.Marks) != 1 || in.LifeSince == broker.Never {
				t.Errorf("got %+v, want the first life with the mark", in)
			}
		}},
		{"only who lists an instance says that it is listed", nothing, func(t *testing.T, k *kit) {
			k.begin()
			in := k.look(0, func(r *broker.LookReport) { r.Listed = false })
			if in.ListedAt != broker.Never || in.FirstSeen != broker.Never {
				t.Errorf("got first seen %v, listed at %v; want Never", in.FirstSeen, in.ListedAt)
			}
			in = k.look(0)
			listed := in.ListedAt
			if listed == broker.Never || in.FirstSeen != listed {
				t.Errorf("got first seen %v, listed at %v; want both now", in.FirstSeen, listed)
			}
			k.tick()
			if in = k.look(0, func(r *broker.LookReport) { r.Listed = false }); in.ListedAt != listed {
				t.Errorf("got listed at %v, want %v", in.ListedAt, listed)
			}
			if in = k.look(0, failed); in.ListedAt <= listed || in.FirstSeen != listed {
				t.Errorf("got listed at %v, first seen %v; want a failed look to say that it is listed too", in.ListedAt, in.FirstSeen)
			}
		}},
		{"an instance is empty from the first look of an unbroken row that saw nobody", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			first := k.look(0, vacant)
			if first.EmptySince != first.LookBegin {
				t.Errorf("got empty since %v, want %v", first.EmptySince, first.LookBegin)
			}
			if in := k.look(0, vacant); in.EmptySince != first.EmptySince {
				t.Errorf("after another: got %v, want %v", in.EmptySince, first.EmptySince)
			}
			if in := k.look(0, failed); in.EmptySince != first.EmptySince {
				t.Errorf("after a failure: got %v, want %v", in.EmptySince, first.EmptySince)
			}
			if in := k.look(0); in.EmptySince != broker.Never {
				t.Errorf("after one that does not say so: got %v, want Never", in.EmptySince)
			}
			if in := k.look(0, vacant); in.EmptySince != in.LookBegin {
				t.Errorf("after a break: got %v, want %v", in.EmptySince, in.LookBegin)
			}
		}},
		{"an instance with a pin is not empty", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			k.look(0, vacant)
			k.pinOn("a", 0, 0)
			if in := k.instance(0); in.EmptySince != broker.Never {
				t.Errorf("after a claim: got empty since %v, want Never", in.EmptySince)
			}
			if in := k.look(0, vacant); in.EmptySince != broker.Never {
				t.Errorf("after a look: got empty since %v, want Never", in.EmptySince)
			}
			k.teardown("a")
			if in := k.instance(0); in.EmptySince != broker.Never {
				t.Errorf("after the room's end: got empty since %v, want Never until a look", in.EmptySince)
			}
			k.look(0, vacant)
			k.adoptOne(0, broker.Adoption{Room: "b", Epoch: 1})
			if in := k.instance(0); in.EmptySince != broker.Never {
				t.Errorf("after an adoption: got empty since %v, want Never", in.EmptySince)
			}
		}},
		{"a look that began before a mark does not say empty", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			k.mark(0, broker.OwnerHook)
			k.tick()
			k.mark(0, broker.OwnerScaler)
			m, _ := k.instance(0).Mark(broker.OwnerScaler)
			for _, begin := range []broker.PoolTime{m.Since - 1, m.Since} {
				in, err := k.Store.Record(k.ctx, k.term, k.report(0, vacant, at(begin)))
				k.noError("Record", err)
				if in.EmptySince != broker.Never {
					t.Errorf("begun %d after the last mark: got empty since %v, want Never", begin-m.Since, in.EmptySince)
				}
			}
			if in := k.look(0, vacant); in.EmptySince != in.LookBegin {
				t.Errorf("begun after it: got empty since %v, want %v", in.EmptySince, in.LookBegin)
			}
		}},
		{"a look changes the reservations it names, of pins that are there", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			a, b, c := k.pinOn("a", 0, 4), k.pinOn("b", 0, 3), k.pinOn("c", 1, 2)
			in := k.look(0, func(r *broker.LookReport) {
				r.Reserve = []broker.Reservation{
					{Room: "a", Epoch: a.Epoch, Left: 1}, {Room: "b", Epoch: b.Epoch - 1, Left: 0}, {Room: "c", Epoch: c.Epoch, Left: 0}, {Room: "d", Epoch: 1, Left: 9},
				}
			})
			if in.Reserved != 4 || k.pinned("a").Reserved != 1 || k.pinned("a").Expected != 4 || k.pinned("b").Reserved != 3 || k.pinned("c").Reserved != 2 {
				t.Errorf("got %d reserved on the instance, %d, %d and %d of the pins; want 4, 1, 3, 2", in.Reserved, k.pinned("a").Reserved, k.pinned("b").Reserved, k.pinned("c").Reserved)
			}
			k.teardown("a")
			if got := k.instance(0).Reserved; got != 3 {
				t.Errorf("after the room's end: got %d reserved, want 3", got)
			}
		}},
		{"an earlier look changes no reservation", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			a := k.pinOn("a", 0, 4)
			early := k.now()
			k.look(0)
			_, err := k.Store.Record(k.ctx, k.term, k.report(0, at(early), func(r *broker.LookReport) {
				r.Reserve = []broker.Reservation{{Room: "a", Epoch: a.Epoch, Left: 1}}
			}))
			k.noError("Record", err)
			k.look(0, failed, func(r *broker.LookReport) {
				r.Reserve = []broker.Reservation{{Room: "a", Epoch: a.Epoch, Left: 1}}
			})
			if got := k.instance(0).Reserved; got != 4 {
				t.Errorf("got %d reserved, want 4", got)
			}
		}},
		{"the oldest pin is told", aClock, func(t *testing.T, k *kit) {
			k.ready(1)
			a := k.pinOn("a", 0, 1)
			k.pass(time.Second)
			b := k.pinOn("b", 0, 1)
			if got := k.instance(0).OldestPin; got != a.Created {
				t.Errorf("got %v, want %v", got, a.Created)
			}
			k.teardown("a")
			if got := k.instance(0).OldestPin; got != b.Created {
				t.Errorf("after its end: got %v, want %v", got, b.Created)
			}
			k.teardown("b")
			if got := k.instance(0).OldestPin; got != broker.Never {
				t.Errorf("without pins: got %v, want Never", got)
			}
		}},
	}
}
