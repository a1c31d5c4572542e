package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/roomscaler/roomscaler/broker"
)

// begin starts a term and remembers it.
func (k *kit) begin() broker.StoreState {
	k.t.Helper()
	st, err := k.Store.Begin(k.ctx)
	k.noError("Begin", err)
	k.term = st.Term
	return st
}

// ready starts a term and ends its rebuilding with instances janus-0 to janus-(n-1),
// each in its first life (see life), answered, empty of sessions.
func (k *kit) ready(n int) {
	k.t.Helper()
	k.begin()
	for i := range n {
		k.look(i)
	}
	k.finish()
	k.tick()
}

func (k *kit) finish() broker.StoreState {
	k.t.Helper()
	st, err := k.Store.Finish(k.ctx, k.term, 0)
	k.noError("Finish", err)
	if st.Phase != broker.Ready {
		k.t.Fatalf("Finish: got phase %q, want %q", st.Phase, broker.Ready)
	}
	return st
}

func name(i int) string    { return fmt.Sprintf("janus-%d", i) }
func life(i int) string    { return fmt.Sprintf("life-%d", i) }
func address(i int) string { return fmt.Sprintf("http://127.0.0.%d:7088/admin", i+1) }

// report is a good look at instance i that began now; edits change it.
func (k *kit) report(i int, edits ...func(*broker.LookReport)) broker.LookReport {
	k.t.Helper()
	r := broker.LookReport{
		Instance: name(i), Ordinal: i, Address: address(i), Listed: true, Begin: k.now(),
		Incarnation: life(i), Answered: true,
	}
	for _, e := range edits {
		e(&r)
	}
	return r
}

// look records a look that is later than all before it.
func (k *kit) look(i int, edits ...func(*broker.LookReport)) broker.Instance {
	k.t.Helper()
	k.tick()
	in, err := k.Store.Record(k.ctx, k.term, k.report(i, edits...))
	k.noError("Record", err)
	return in
}

func vacant(r *broker.LookReport) { r.Vacant = true }

func sessions(n int) func(*broker.LookReport) {
	return func(r *broker.LookReport) { r.Sessions = n }
}

func failed(r *broker.LookReport) {
	r.Fault, r.Advice, r.Incarnation, r.Answered = broker.FaultTimeout, "look at it", "", false
}

func (k *kit) state() broker.StoreState {
	k.t.Helper()
	st, err := k.Store.State(k.ctx)
	k.noError("State", err)
	return st
}

func (k *kit) now() broker.PoolTime { return k.state().Now }

// tick lets the pool's clock go on by at least a millisecond.
func (k *kit) tick() {
	k.t.Helper()
	if k.Advance != nil {
		k.Advance(time.Millisecond)
		k.now()
		return
	}
	from, ticks := k.now(), time.NewTicker(time.Millisecond)
	defer ticks.Stop()
	for range 10_000 {
		if k.now() > from {
			return
		}
		<-ticks.C
	}
	k.t.Fatal("the pool's clock stands still")
}

// pass lets time pass in steps that the store counts in full.
func (k *kit) pass(d time.Duration) {
	k.t.Helper()
	for d > 0 {
		step := min(d, StepCap/2)
		k.Advance(step)
		k.now()
		d -= step
	}
}

// all are candidates janus-0 to janus-(n-1) in their first lives.
func all(n int) []broker.Candidate {
	out := make([]broker.Candidate, n)
	for i := range out {
		out[i] = broker.Candidate{Instance: name(i), Incarnation: life(i)}
	}
	return out
}

// request asks for a home on one of n instances, by least load.
func request(room string, expected, n int) broker.ClaimRequest {
	return broker.ClaimRequest{Room: room, Expected: expected, Pick: broker.PickLeast, Candidates: all(n)}
}

// claim claims afresh.
func (k *kit) claim(r broker.ClaimRequest) broker.Pin {
	k.t.Helper()
	p, fresh, err := k.Store.Claim(k.ctx, k.term, r)
	k.noError("Claim of "+r.Room, err)
	if !fresh {
		k.t.Fatalf("Claim of %s: got a pin that was there, want a fresh one", r.Room)
	}
	return p
}

// pinOn claims the room on instance i.
func (k *kit) pinOn(room string, i, expected int) broker.Pin {
	k.t.Helper()
	return k.claim(broker.ClaimRequest{Room: room, Expected: expected, Pick: broker.PickLeast, Candidates: all(i + 1)[i:]})
}

// refused checks that the claim finds no capacity.
func (k *kit) refused(r broker.ClaimRequest) {
	k.t.Helper()
	_, _, err := k.Store.Claim(k.ctx, k.term, r)
	k.wantError("Claim of "+r.Room, err, broker.ErrNoCapacity)
}

func (k *kit) confirm(p broker.Pin) broker.Pin {
	k.t.Helper()
	out, err := k.Store.Confirm(k.ctx, k.term, p.Room, p.Epoch)
	k.noError("Confirm", err)
	return out
}

// pinned returns the room's pin without touching it.
func (k *kit) pinned(room string) broker.Pin {
	k.t.Helper()
	p, _, err := k.Store.Lookup(k.ctx, room, false)
	k.noError("Lookup of "+room, err)
	return p
}

func (k *kit) unpinned(room string) {
	k.t.Helper()
	_, _, err := k.Store.Lookup(k.ctx, room, false)
	k.wantError("Lookup of "+room, err, broker.ErrRoomNotFound)
}

func (k *kit) mark(i int, owner broker.Owner) broker.Instance {
	k.t.Helper()
	in, err := k.Store.Mark(k.ctx, k.term, name(i), broker.MarkRequest{Owner: owner, Reason: "test"})
	k.noError("Mark", err)
	return in
}

func (k *kit) unmark(i int, owner broker.Owner) broker.Instance {
	k.t.Helper()
	in, err := k.Store.Unmark(k.ctx, k.term, name(i), owner)
	k.noError("Unmark", err)
	return in
}

func (k *kit) facts() broker.Facts {
	k.t.Helper()
	f, err := k.Store.Facts(k.ctx)
	k.noError("Facts", err)
	return f
}

func (k *kit) instance(i int) broker.Instance {
	k.t.Helper()
	for _, in := range k.facts().Instances {
		if in.Name == name(i) {
			return in
		}
	}
	k.t.Fatalf("Facts: got no instance %s", name(i))
	return broker.Instance{}
}

// plan stores a number over whatever plan there is.
func (k *kit) plan(desired int, seal ...broker.SealRequest) broker.Plan {
	k.t.Helper()
	p, err := k.put(broker.PlanUpdate{Desired: desired, Seal: seal})
	k.noError("PutPlan", err)
	return p
}

// put stores an update over whatever plan there is.
func (k *kit) put(u broker.PlanUpdate) (broker.Plan, error) {
	k.t.Helper()
	u.IfVersion = k.facts().Plan.Version
	return k.Store.PutPlan(k.ctx, k.term, u)
}

func seal(i int) broker.SealRequest {
	return broker.SealRequest{Instance: name(i), Incarnation: life(i)}
}

func (k *kit) end(r broker.EndRequest) broker.Pin {
	k.t.Helper()
	p, err := k.Store.End(k.ctx, k.term, r)
	k.noError("End", err)
	return p
}

func (k *kit) teardown(room string) broker.Pin {
	k.t.Helper()
	return k.end(broker.EndRequest{Room: room, Cause: broker.CauseTeardown})
}

// pins lists all pins by room.
func (k *kit) pins() []broker.Pin {
	k.t.Helper()
	out, err := k.Store.Pins(k.ctx, "", "", 0)
	k.noError("Pins", err)
	return out
}

func (k *kit) tombstones(i int) []broker.Tombstone {
	k.t.Helper()
	out, err := k.Store.Tombstones(k.ctx, name(i))
	k.noError("Tombstones", err)
	return out
}

// byRoom sorts pins whose order the contract leaves open.
func byRoom(pins []broker.Pin) []broker.Pin {
	slices.SortFunc(pins, func(a, b broker.Pin) int { return cmp.Compare(a.Room, b.Room) })
	return pins
}
