package storetest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/roomscaler/roomscaler/broker"
)

// do makes the call and returns its answer in a form that compares.
func (s *side) do(ctx context.Context, m move) string {
	term := s.term
	if m.WrongNow {
		term = "made-up"
	}
	room, instance := fmt.Sprint("room-", m.Room), name(m.Instance)
	begin := s.now - broker.PoolTime(m.Back.Milliseconds())
	switch m.Do {
	case "wait":
		return s.wait(ctx, m.Wait)
	case "long":
		answer := ""
		for range 65 {
			answer = s.wait(ctx, 9700*time.Millisecond)
		}
		return answer
	case "begin":
		st, err := s.Store.Begin(ctx)
		return s.state(st) + errorText(err)
	case "finish":
		st, err := s.Store.Finish(ctx, term, m.Back)
		if err != nil {
			return errorText(err)
		}
		return s.state(st)
	case "claim":
		p, fresh, err := s.Store.Claim(ctx, term, s.request(room, m))
		return fmt.Sprint(s.pin(p), " fresh ", fresh, errorText(err))
	case "confirm":
		p, err := s.Store.Confirm(ctx, term, room, s.epoch(m.Epoch))
		return s.pin(p) + errorText(err)
	case "lookup":
		p, st, err := s.Store.Lookup(ctx, room, m.Yes)
		return s.pin(p) + s.state(st) + errorText(err)
	case "end":
		cause := []broker.Cause{broker.CauseRefused, broker.CauseTeardown, broker.CauseGone, broker.CauseExpired, broker.CauseLost}[m.N]
		p, err := s.Store.End(ctx, term, broker.EndRequest{Room: room, Epoch: s.epoch(m.Epoch), Cause: cause, Begin: begin, TTL: m.Back})
		return s.pin(p) + errorText(err)
	case "adopt":
		return s.adopt(ctx, term, m)
	case "record":
		in, err := s.Store.Record(ctx, term, s.look(m, begin))
		return s.instance(in) + errorText(err)
	case "mark":
		in, err := s.Store.Mark(ctx, term, instance, broker.MarkRequest{Owner: m.Owner, Grace: time.Duration(m.N) * time.Minute})
		return s.instance(in) + errorText(err)
	case "unmark":
		in, err := s.Store.Unmark(ctx, term, instance, m.Owner)
		return s.instance(in) + errorText(err)
	case "lost":
		ended, err := s.Store.Lost(ctx, term, instance, m.Life)
		return s.pins(byRoom(ended)) + errorText(err)
	case "rebirth":
		to := "second"
		if m.Yes {
			to = "first"
		}
		ended, err := s.Store.Rebirth(ctx, term, instance, m.Life, to)
		return s.pins(byRoom(ended)) + errorText(err)
	case "forget":
		return errorText(s.Store.Forget(ctx, term, instance))
	case "assert":
		return errorText(s.Store.Assert(ctx, term, assertion(m)))
	case "plan":
		p, err := s.Store.PutPlan(ctx, term, s.update(m))
		if err == nil {
			s.version = p.Version
		}
		return s.plan(p) + errorText(err)
	case "pins":
		pins, err := s.Store.Pins(ctx, "", "", 0)
		some, err2 := s.Store.Pins(ctx, instance, room, m.N)
		return s.pins(pins) + errorText(err) + "; " + s.pins(some) + errorText(err2)
	case "tombstones":
		return s.tombstones(ctx, instance)
	}
	return s.facts(ctx)
}

func (s *side) request(room string, m move) broker.ClaimRequest {
	r := broker.ClaimRequest{Room: room, Expected: m.N, Settings: m.Life, Pick: broker.PickLeast, Hard: 8}
	if m.Yes {
		r.Pick, r.Soft = broker.PickFirst, m.N+m.Mask
	}
	if m.Or {
		r.Labels = map[string]string{"life": m.Life}
	}
	for i := range sameInstances {
		life := "first"
		if m.Mask == 1<<i {
			life = m.Life
		}
		r.Candidates = append(r.Candidates, broker.Candidate{Instance: name((i + m.Instance) % sameInstances), Incarnation: life})
	}
	return r
}

func (s *side) look(m move, begin broker.PoolTime) broker.LookReport {
	r := broker.LookReport{
		Instance: name(m.Instance), Ordinal: m.Instance, Address: address(m.Instance), Listed: m.Mask != 0, Begin: begin,
		Incarnation: m.Life, Sessions: m.N, Participants: m.Mask, Rooms: m.N, StringIDs: m.Or, Vacant: m.N < 3, Answered: m.Yes,
		Reserve: []broker.Reservation{{Room: fmt.Sprint("room-", m.Room), Epoch: s.epoch(m.Epoch), Left: m.Mask % 3}},
	}
	if m.Mask == 7 {
		r.Fault, r.Advice = broker.FaultTimeout, "advice"
	}
	return r
}

// adopt shows a room of an epoch that was seen, or of one above all, and another room of an
// epoch below all.
func (s *side) adopt(ctx context.Context, term broker.Term, m move) string {
	epoch := s.epoch(m.Epoch)
	if m.Yes || epoch == 0 {
		epoch = max(s.highest, 1_000) + 1_000_000_000_000
	}
	res, err := s.Store.Adopt(ctx, term, name(m.Instance), m.Life, []broker.Adoption{
		{Room: fmt.Sprint("room-", m.Room), Epoch: epoch, Expected: m.N},
		{Room: fmt.Sprint("room-", (m.Room+1+m.Mask%(sameRooms-1))%sameRooms), Epoch: 7, Expected: 1, Labels: map[string]string{"x": "y"}},
	})
	out := ""
	for _, r := range res {
		out += fmt.Sprintf("%s #%d %s %s; ", r.Room, s.number(r.Epoch), r.Outcome, s.pin(r.Pin))
	}
	return out + errorText(err)
}

func assertion(m move) broker.Assertion {
	r := broker.AssertedInstance{
		Name: name(m.Instance), Ordinal: m.Instance, Address: address(m.Instance), Incarnation: m.Life, Released: m.Yes && m.Or, Lost: m.Mask == 1,
	}
	if m.N > 1 {
		r.Marks = []broker.AssertedMark{{Owner: m.Owner, Grace: time.Duration(m.Mask) * time.Minute, Elapsed: time.Duration(m.N) * 20 * time.Second}}
	}
	return broker.Assertion{Floor: m.Mask / 2, Limit: m.Mask % 4, Instances: []broker.AssertedInstance{r}}
}

func (s *side) update(m move) broker.PlanUpdate {
	u := broker.PlanUpdate{IfVersion: s.version, Desired: m.N, Target: m.Mask, Body: []byte(m.Life), GuardFor: 4 * m.Back}
	if m.Epoch == 3 {
		u.IfVersion--
	}
	for i := range sameInstances {
		life := "first"
		if i == m.Instance {
			life = m.Life
		}
		if m.Mask&(1<<i) != 0 || m.Or {
			u.Seal = append(u.Seal, broker.SealRequest{Instance: name(i), Incarnation: life, Occupied: m.Yes})
			u.Unseal = append(u.Unseal, name(i))
		}
	}
	return u
}

func (s *side) pin(p broker.Pin) string {
	if p.Room == "" {
		return "no pin"
	}
	return fmt.Sprintf("%s on %s (%s) #%d %s, %d of %d, settings %q, labels %v, created %s, since %s, seen %s", p.Room, p.Instance, p.Incarnation,
		s.number(p.Epoch), p.State, p.Reserved, p.Expected, p.Settings, p.Labels, s.at(p.Created), s.at(p.Since), s.at(p.LastSeen))
}

func (s *side) pins(pins []broker.Pin) string {
	out := ""
	for _, p := range pins {
		out += s.pin(p) + "\n"
	}
	return out
}

// instance leaves out only when a row of failures began: a look lasts.
func (s *side) instance(in broker.Instance) string {
	if in.Name == "" {
		return "no instance"
	}
	out := fmt.Sprintf("%s (%d, %s) %q: %d sessions, %d people, %d rooms, strings %v, look %s, empty %s, %d pins, %d reserved, oldest %s, first %s, listed %s, life %s, %q %q x%d %v, lost %v, answered %v",
		in.Name, in.Ordinal, in.Address, in.Incarnation, in.Sessions, in.Participants, in.Rooms, in.StringIDs, s.at(in.LookBegin), s.at(in.EmptySince),
		in.Pins, in.Reserved, s.at(in.OldestPin), s.at(in.FirstSeen), s.at(in.ListedAt), s.at(in.LifeSince), in.Fault, in.Advice, in.Failures,
		in.FaultSince == broker.Never, in.Lost, in.Answered)
	for _, m := range in.Marks {
		out += fmt.Sprintf(", %s %q since %s for %v", m.Owner, m.Reason, s.at(m.Since), m.Grace)
	}
	if in.Seal != nil {
		out += fmt.Sprintf(", sealed by %d at %s", in.Seal.Version, s.at(in.Seal.At))
	}
	return out + "\n"
}

// plan leaves out a guard that no longer holds.
func (s *side) plan(p broker.Plan) string {
	if p.Version == 0 {
		return "no plan"
	}
	out := fmt.Sprintf("plan %d: %d, target %d %q %q, stored %s", p.Version, p.Desired, p.Target, p.EmptyWhen, p.Body, s.at(p.StoredAt))
	for _, g := range p.Guards {
		if s.now < g.Until {
			out += fmt.Sprintf(", guard %d until %s", g.Below, s.at(g.Until))
		}
	}
	return out
}

func (s *side) facts(ctx context.Context) string {
	f, err := s.Store.Facts(ctx)
	out := s.state(f.StoreState) + errorText(err) + "\n" + s.plan(f.Plan) + fmt.Sprintf("\n%+v\n", f.Demand)
	for _, in := range f.Instances {
		out += s.instance(in)
	}
	return out
}

func (s *side) tombstones(ctx context.Context, instance string) string {
	stones, err := s.Store.Tombstones(ctx, instance)
	slices.SortFunc(stones, func(a, b broker.Tombstone) int {
		return cmp.Or(cmp.Compare(a.Room, b.Room), cmp.Compare(a.Epoch, b.Epoch))
	})
	out := ""
	for _, st := range stones {
		out += fmt.Sprintf("%s #%d %s at %s\n", st.Room, s.number(st.Epoch), st.Cause, s.at(st.Ended))
	}
	return out + errorText(err)
}
