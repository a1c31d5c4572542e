package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/broker"
)

func termClauses() []clause {
	return []clause{
		{"a fresh store has no term", nothing, func(t *testing.T, k *kit) {
			_, err := k.Store.State(k.ctx)
			k.wantError("State", err, broker.ErrStoreLost)
			_, err = k.Store.Facts(k.ctx)
			k.wantError("Facts", err, broker.ErrStoreLost)
			_, _, err = k.Store.Lookup(k.ctx, "a", true)
			k.wantError("Lookup of a room that is not there", err, broker.ErrStoreLost)
			for what, call := range k.changes("made-up") {
				k.wantError(what, call(), broker.ErrStoreLost)
			}
		}},
		{"Begin starts a term that is being rebuilt", nothing, func(t *testing.T, k *kit) {
			st := k.begin()
			if st.Term == "" || st.Phase != broker.Rebuilding || st.Floor != 0 || st.Gap != broker.Never {
				t.Errorf("got %+v, want a term in phase rebuilding, floor 0, no gap", st)
			}
			if got := k.state(); got.Term != st.Term || got.Phase != st.Phase {
				t.Errorf("State: got %+v, want %+v", got, st)
			}
		}},
		{"Begin within a term only returns the state", nothing, func(t *testing.T, k *kit) {
			k.ready(1)
			k.plan(1)
			term := k.term
			st := k.begin()
			if st.Term != term || st.Phase != broker.Ready {
				t.Errorf("got %+v, want term %q in phase ready", st, term)
			}
			if got := k.facts(); got.Plan.Version == 0 || !got.Instances[0].Answered {
				t.Errorf("got plan %+v, answered %v; want both kept", got.Plan, got.Instances[0].Answered)
			}
		}},
		{"a call for another term is ErrTerm and changes nothing", nothing, func(t *testing.T, k *kit) {
			k.ready(2)
			k.pinOn("a", 0, 3)
			k.mark(1, broker.OwnerScaler)
			k.plan(2)
			facts, pins := k.facts(), k.pins()
			for what, call := range k.changes("made-up") {
				k.wantError(what, call(), broker.ErrTerm)
			}
			if diff := cmp.Diff(facts, k.facts(), sameMoment); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(pins, k.pins()); diff != "" {
				t.Errorf("pins (-want +got):\n%s", diff)
			}
		}},
		{"a room without a pin cannot be claimed and no plan stored while rebuilding", nothing, func(t *testing.T, k *kit) {
			k.begin()
			k.look(0)
			_, _, err := k.Store.Claim(k.ctx, k.term, request("a", 1, 1))
			k.wantError("Claim", err, broker.ErrRebuilding)
			_, err = k.Store.PutPlan(k.ctx, k.term, broker.PlanUpdate{Desired: 1})
			k.wantError("PutPlan", err, broker.ErrRebuilding)
			if got := k.facts().Demand; got != (broker.Demand{}) {
				t.Errorf("got demand %+v, want none: the room was not refused for want of capacity", got)
			}
		}},
		{"a room with a pin is found and claimed while rebuilding", nothing, func(t *testing.T, k *kit) {
			k.begin()
			k.look(0)
			k.adoptOne(0, broker.Adoption{Room: "a", Epoch: 5})
			p, fresh, err := k.Store.Claim(k.ctx, k.term, request("a", 1, 1))
			if err != nil || fresh || p.Epoch != 5 {
				t.Errorf("Claim: got epoch %v, fresh %v, %v; want epoch 5, not fresh", p.Epoch, fresh, err)
			}
			p, st, err := k.Store.Lookup(k.ctx, "a", false)
			if err != nil || p.Epoch != 5 || st.Phase != broker.Rebuilding || st.Term != k.term {
				t.Errorf("Lookup: got epoch %v, %+v, %v; want epoch 5 in phase rebuilding", p.Epoch, st, err)
			}
			_, st, err = k.Store.Lookup(k.ctx, "b", false)
			if !errors.Is(err, broker.ErrRoomNotFound) || st.Phase != broker.Rebuilding {
				t.Errorf("Lookup of another: got %v in phase %q, want ErrRoomNotFound in phase rebuilding", err, st.Phase)
			}
		}},
		{"Finish ends the rebuilding when every instance has answered", nothing, func(t *testing.T, k *kit) {
			k.begin()
			k.look(0)
			k.look(1, failed)
			k.stillRebuilding(0)
			k.look(1, func(r *broker.LookReport) { r.Answered = false })
			k.stillRebuilding(0)
			k.look(1)
			k.finish()
			if got := k.state().Phase; got != broker.Ready {
				t.Errorf("State: got phase %q, want ready", got)
			}
			k.finish()
		}},
		{"an instance that does not answer counts through what a broker remembers of it", nothing, func(t *testing.T, k *kit) {
			k.begin()
			k.look(0, failed, func(r *broker.LookReport) { r.Answered = true })
			k.finish()
		}},
		{"an answer stays one when later looks fail", nothing, func(t *testing.T, k *kit) {
			k.begin()
			k.look(0)
			k.look(0, failed)
			k.finish()
		}},
		{"a lost instance holds nothing up", nothing, func(t *testing.T, k *kit) {
			k.begin()
			k.look(0)
			k.look(1, func(r *broker.LookReport) { r.Answered = false })
			k.stillRebuilding(0)
			_, err := k.Store.Lost(k.ctx, k.term, name(1), life(1))
			k.noError("Lost", err)
			k.finish()
		}},
		{"an instance that became known within the hold keeps it rebuilding", aClock, func(t *testing.T, k *kit) {
			k.begin()
			k.look(0)
			k.pass(4 * time.Second)
			k.look(1)
			k.pass(4 * time.Second)
			k.stillRebuilding(5 * time.Second)
			k.pass(2 * time.Second)
			st, err := k.Store.Finish(k.ctx, k.term, 5*time.Second)
			if err != nil || st.Phase != broker.Ready {
				t.Errorf("got phase %q, %v; want ready", st.Phase, err)
			}
		}},
		{"the floor is above every known instance when rebuilding ends", nothing, func(t *testing.T, k *kit) {
			k.begin()
			k.look(0)
			k.look(4)
			if st := k.finish(); st.Floor != 5 {
				t.Errorf("got floor %d, want 5", st.Floor)
			}
		}},
		{"a lost store begins a new term with nothing", aLoss, func(t *testing.T, k *kit) {
			k.ready(1)
			k.pinOn("a", 0, 1)
			old := k.term
			k.Lose()
			_, err := k.Store.State(k.ctx)
			k.wantError("State", err, broker.ErrStoreLost)
			for what, call := range k.changes(old) {
				k.wantError(what+" for the old term", call(), broker.ErrStoreLost)
			}
			if st := k.begin(); st.Term == old || st.Phase != broker.Rebuilding {
				t.Errorf("got %+v, want another term than %q, in phase rebuilding", st, old)
			}
			if f := k.facts(); len(f.Instances) != 0 || len(k.pins()) != 0 {
				t.Errorf("got %d instances and %d pins, want none", len(f.Instances), len(k.pins()))
			}
		}},
		{"an older copy keeps pins, marks, seals and instances, all unanswered, and no plan or demand", aCopy, func(t *testing.T, k *kit) {
			k.ready(4)
			p := k.pinOn("a", 0, 2)
			k.mark(1, broker.OwnerHook)
			k.plan(4)
			k.mark(3, broker.OwnerScaler)
			k.plan(3, seal(3))
			k.refused(request("b", 7, 0))
			old := k.term
			restore := k.Copy()
			k.teardown("a")
			k.unmark(1, broker.OwnerHook)
			restore()

			_, err := k.Store.State(k.ctx)
			k.wantError("State", err, broker.ErrStoreLost)
			_, err = k.Store.Facts(k.ctx)
			k.wantError("Facts", err, broker.ErrStoreLost)
			for what, call := range k.changes(old) {
				k.wantError(what+" for the old term", call(), broker.ErrStoreLost)
			}
			if got := k.pinned("a"); got.Epoch != p.Epoch {
				t.Errorf("Lookup before Begin: got %+v, want %+v", got, p)
			}
			if st := k.begin(); st.Term == old || st.Phase != broker.Rebuilding || st.Floor != 0 {
				t.Errorf("got %+v, want a new term in phase rebuilding with floor 0", st)
			}
			f := k.facts()
			if f.Plan.Version != 0 || f.Demand != (broker.Demand{}) {
				t.Errorf("got plan %+v and demand %+v, want none", f.Plan, f.Demand)
			}
			for _, in := range f.Instances {
				if in.Answered {
					t.Errorf("%s has answered, want not", in.Name)
				}
			}
			if got := k.pinned("a"); got.Epoch != p.Epoch || got.Reserved != 2 {
				t.Errorf("got pin %+v, want %+v", got, p)
			}
			if _, ok := k.instance(1).Mark(broker.OwnerHook); !ok || k.instance(3).Seal == nil {
				t.Error("mark and seal: want both kept")
			}
		}},
	}
}

// stillRebuilding checks that Finish does not end the rebuilding, without an error.
func (k *kit) stillRebuilding(hold time.Duration) {
	k.t.Helper()
	st, err := k.Store.Finish(k.ctx, k.term, hold)
	k.noError("Finish", err)
	if st.Phase != broker.Rebuilding {
		k.t.Fatalf("Finish: got phase %q, want rebuilding", st.Phase)
	}
}

// changes are calls of every method that takes a term, for this one.
func (k *kit) changes(term broker.Term) map[string]func() error {
	s, ctx := k.Store, k.ctx
	return map[string]func() error{
		"Assert":  func() error { return s.Assert(ctx, term, broker.Assertion{Floor: 9}) },
		"Finish":  func() error { _, err := s.Finish(ctx, term, 0); return err },
		"Claim":   func() error { _, _, err := s.Claim(ctx, term, request("new", 1, 2)); return err },
		"Confirm": func() error { _, err := s.Confirm(ctx, term, "a", 1); return err },
		"End": func() error {
			_, err := s.End(ctx, term, broker.EndRequest{Room: "a", Cause: broker.CauseTeardown})
			return err
		},
		"Adopt": func() error {
			_, err := s.Adopt(ctx, term, name(0), life(0), []broker.Adoption{{Room: "new", Epoch: 1 << 52}})
			return err
		},
		"Record": func() error {
			_, err := s.Record(ctx, term, broker.LookReport{Instance: "new", Ordinal: 8, Incarnation: "x", Begin: 1 << 50})
			return err
		},
		"Rebirth": func() error { _, err := s.Rebirth(ctx, term, name(0), life(0), "other"); return err },
		"Mark": func() error {
			_, err := s.Mark(ctx, term, name(0), broker.MarkRequest{Owner: broker.OwnerHook})
			return err
		},
		"Unmark":  func() error { _, err := s.Unmark(ctx, term, name(1), broker.OwnerScaler); return err },
		"Lost":    func() error { _, err := s.Lost(ctx, term, name(0), life(0)); return err },
		"Forget":  func() error { return s.Forget(ctx, term, name(1)) },
		"PutPlan": func() error { _, err := s.PutPlan(ctx, term, broker.PlanUpdate{IfVersion: 1, Desired: 7}); return err },
	}
}

// sameMoment compares facts but for the time that has passed between them.
var sameMoment = cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "StoreState.Now" }, cmp.Ignore())
