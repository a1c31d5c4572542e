package scaler_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/scaler"
)

// outcome is what a worked example tells of a decision.
type outcome struct {
	Dload, Dslot, Dnow, Dcool, Floor, Desired int
	Rule                                      scaler.Rule
	Cordon, Uncordon, Seal                    []string
}

func outcomeOf(d scaler.Decision) outcome {
	o := outcome{
		Dload: d.Why.Dload, Dslot: d.Why.Dslot, Dnow: d.Why.Dnow, Dcool: d.Why.Dcool, Floor: d.Why.Floor,
		Desired: d.Desired, Rule: d.Why.Rule, Cordon: d.Cordon, Uncordon: d.Uncordon,
	}
	for _, s := range d.Put.Seal {
		o.Seal = append(o.Seal, s.Instance)
	}
	return o
}

type example struct {
	name string
	r    int
	with []brokerapi.Instance
	pair []string // of metadata
	edit func(*brokerapi.PoolFacts, *scaler.Record)
	want outcome
}

// The examples are those that the law was worked out with: T 50, H 25, bounds 2 to 60, E 60 s.
func examples() []example {
	queue := func(n int) func(*brokerapi.PoolFacts, *scaler.Record) {
		return func(f *brokerapi.PoolFacts, _ *scaler.Record) { f.Queue.Participants = n }
	}
	stale := func(in []brokerapi.Instance, which ...int) []brokerapi.Instance {
		for _, i := range which {
			in[i].AgeMS = ptr(int64(40_000))
		}
		return in
	}
	all := make([]int, 20)
	for i := range all {
		all[i] = i
	}
	return []example{
		{name: "1: low load after the cool-down marks the highest", r: 10, with: row(10, 40),
			want: outcome{9, 3, 9, 9, 10, 10, scaler.RuleFloor, []string{"janus-9"}, nil, nil}},
		{name: "2: marked and empty for the dwell, it goes", r: 10, with: append(row(9, 44), vacated(9, 75*time.Second)),
			want: outcome{9, 5, 9, 9, 9, 9, scaler.RuleLower, nil, nil, []string{"janus-9"}}},
		{name: "3: one more for load, queue and spare", r: 20, with: row(20, 48), edit: queue(40),
			want: outcome{21, 21, 21, 21, 20, 21, scaler.RuleRise, nil, nil, nil}},
		{name: "4: a long queue", r: 20, with: row(20, 50), edit: queue(400),
			want: outcome{29, 29, 29, 29, 20, 29, scaler.RuleRise, nil, nil, nil}},
		{name: "5: rising load takes marks off before it starts anything", r: 12, edit: queue(60),
			with: append(row(10, 46), marked(instance(10, 5), "scaler", time.Minute, nil), marked(instance(11, 5), "scaler", time.Minute, nil)),
			want: outcome{12, 11, 12, 12, 12, 12, scaler.RuleSteady, nil, []string{"janus-10", "janus-11"}, nil}},
		{name: "6: a released instance that is still ending is no load", r: 19, with: append(row(19, 45), released(marked(instance(19, 30), "scaler", time.Hour, nil))),
			want: outcome{18, 5, 18, 18, 19, 19, scaler.RuleFloor, []string{"janus-18"}, nil, nil}},
		{name: "7: nor is it capacity: the number goes beyond it", r: 9, with: append(row(9, 50), released(vacated(9, time.Hour))), edit: queue(20),
			want: outcome{11, 11, 11, 11, 9, 11, scaler.RuleRise, nil, nil, nil}},
		{name: "8: instances that are starting are capacity and may not go", r: 25, edit: func(f *brokerapi.PoolFacts, rec *scaler.Record) {
			f.Queue.Participants = 150
			rec.Peaks = []scaler.Sample{{At: now - 60_000, N: 25}}
		}, with: append(row(20, 50), starting(20, 20*time.Second), starting(21, 20*time.Second), starting(22, 20*time.Second), starting(23, 20*time.Second), starting(24, 20*time.Second)),
			want: outcome{24, 24, 24, 25, 25, 25, scaler.RuleCooldown, nil, nil, nil}},
		{name: "9: a silent instance is load without being capacity", r: 10, with: stale(row(10, 45), 4),
			want: outcome{11, 6, 11, 11, 10, 11, scaler.RuleRise, nil, nil, nil}},
		// Here the broker is there and its looks fail: it answers, so there is a number, but never a lower one. (A broker
		// that does not answer is the planner's matter: UNAVAILABLE.) Two are made up for, and the load counts as last told.
		{name: "10: no fresh data of anybody holds the number", r: 20, with: stale(row(20, 10), all...),
			want: outcome{7, 3, 7, 20, 20, 20, scaler.RuleCooldown, nil, nil, nil}},
		{name: "10b: time of which nothing is known counts as if all had been needed", r: 20, with: row(20, 10),
			edit: func(f *brokerapi.PoolFacts, _ *scaler.Record) { f.GapMS = ptr(int64(500)) },
			want: outcome{5, 1, 5, 20, 20, 20, scaler.RuleCooldown, nil, nil, nil}},
		{name: "11: a released instance is not brought back by rising load", r: 12, with: append(row(11, 46), released(vacated(11, 2*time.Minute))),
			edit: func(f *brokerapi.PoolFacts, rec *scaler.Record) {
				f.Queue.Participants = 30
				rec.Lows = []scaler.Sample{{At: now - 20_000, N: 11}, {At: now - 1000, N: 12}}
			},
			want: outcome{13, 13, 13, 13, 11, 13, scaler.RuleRise, nil, nil, nil}},
		{name: "12: a new term begins with all that stands", r: 0, with: row(20, 15),
			edit: func(f *brokerapi.PoolFacts, _ *scaler.Record) { f.Plan, f.Floor = nil, 20 },
			want: outcome{7, 1, 7, 20, 20, 20, scaler.RuleCooldown, nil, nil, nil}},
		// The number stays above the maximum while rooms are there, but those above it take no new ones, four in a
		// period: the cool-down does not protect what may not be.
		{name: "13: a lower maximum drains, it does not cut", r: 20, with: row(20, 45), pair: []string{"maxInstances", "15"},
			want: outcome{19, 5, 19, 19, 20, 20, scaler.RuleMaximum, []string{"janus-19", "janus-18", "janus-17", "janus-16"}, nil, nil}},
	}
}

func TestDecide_Examples(t *testing.T) {
	for _, e := range examples() {
		t.Run(e.name, func(t *testing.T) {
			tg := target(t, e.pair...)
			rec := record(t, tg, e.r)
			edit := e.edit
			if edit == nil {
				edit = func(*brokerapi.PoolFacts, *scaler.Record) {}
			}
			edit(&brokerapi.PoolFacts{}, &rec) // the record goes into the facts
			f := facts(t, e.r, rec, tg, e.with...)
			edit(&f, &rec)
			d := decide(f, tg)
			if diff := cmp.Diff(e.want, outcomeOf(d)); diff != "" {
				t.Errorf("decision (-want +got):\n%s\n%s", diff, d.Why)
			}
			if len(d.Put.Unseal) > 0 {
				t.Errorf("unseals %v", d.Put.Unseal)
			}
		})
	}
}

// TestG3_OnlyWhatMayGo: the highest instance is not needed; whether it goes depends on it alone.
func TestG3_OnlyWhatMayGo(t *testing.T) {
	old := marked(instance(3, 8), "scaler", 2*time.Hour, nil)
	cases := []struct {
		name string
		top  brokerapi.Instance
		pair []string
		goes bool
	}{
		{"one without the scaler's mark stays", func() brokerapi.Instance { in := vacated(3, time.Hour); in.Marks = nil; return in }(), nil, false},
		{"one marked by somebody else alone stays", marked(instance(3, 0), "operator", time.Hour, nil), nil, false},
		{"one that is marked, empty and fresh goes", vacated(3, time.Hour), nil, true},
		{"one that has been empty too shortly stays", vacated(3, 59*time.Second), nil, false},
		{"one that nobody has looked at since it was marked stays", func() brokerapi.Instance {
			in := marked(marked(instance(3, 0), "hook", time.Hour, nil), "scaler", 900*time.Millisecond, nil)
			in.EmptyMS = ptr(int64(1_800_000))
			return in
		}(), nil, false},
		{"one whose data is old stays", func() brokerapi.Instance { in := vacated(3, time.Hour); in.AgeMS = ptr(int64(31_000)); return in }(), nil, false},
		{"one without data stays", func() brokerapi.Instance { in := vacated(3, time.Hour); in.AgeMS, in.Sessions = nil, nil; return in }(), nil, false},
		{"one with a reservation stays", func() brokerapi.Instance { in := vacated(3, 5*time.Minute); in.Reserved = 1; return in }(), nil, false},
		{"one with a pin stays", func() brokerapi.Instance { in := vacated(3, 5*time.Minute); in.RoomsLeft = 1; return in }(), nil, false},
		{"one with sessions stays although its rooms are gone", func() brokerapi.Instance { in := vacated(3, 5*time.Minute); in.Sessions = ptr(1); return in }(), nil, false},
		{"unless rooms alone count", func() brokerapi.Instance { in := vacated(3, time.Hour); in.Sessions = ptr(1); return in }(), []string{"emptyWhen", "rooms"}, true},
		{"one whose grace is over goes with its rooms", old, nil, true},
		{"one whose grace is not over stays", old, []string{"drainGracePeriod", "3h"}, false},
		{"one whose grace is over stays when it shall be held", old, []string{"onGraceExpired", "hold"}, false},
		{"another owner's mark without deadline holds it for ever", marked(old, "operator", 9*time.Hour, nil), nil, false},
		{"another owner's deadline that is not over holds it", marked(old, "hook", 9*time.Hour, ptr(int64(1))), nil, false},
		{"another owner's deadline that is over does not hold it", marked(old, "hook", 9*time.Hour, ptr(int64(0))), nil, true},
		{"the broker's mark has no deadline and holds nothing", marked(old, "broker", time.Hour, nil), nil, true},
		{"an expired grace on old data holds it", func() brokerapi.Instance { in := old; in.AgeMS = ptr(int64(31_000)); return in }(), nil, false},
		{"one that never ran goes", marked(starting(3, time.Hour), "scaler", time.Minute, nil), nil, true},
		{"one that is still starting stays", marked(starting(3, time.Minute), "scaler", time.Minute, nil), nil, false},
		{"one that hangs and never answered stays", func() brokerapi.Instance {
			in := marked(starting(3, time.Hour), "scaler", time.Minute, nil)
			in.Reason = "timeout"
			return in
		}(), nil, false},
		{"a lost one holds nothing", func() brokerapi.Instance {
			in := instance(3, 40)
			in.State, in.AgeMS = "lost", ptr(int64(400_000))
			return in
		}(), nil, true},
		{"a lost one that is back and empty holds nothing", func() brokerapi.Instance { in := instance(3, 0); in.State = "lost"; return in }(), nil, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tg := target(t, c.pair...)
			f := facts(t, 4, record(t, tg, 4), tg, append(row(3, 30), c.top)...)
			d := decide(f, tg)
			if got := d.Desired < 4; got != c.goes {
				t.Fatalf("goes: got %v, want %v; %s", got, c.goes, d.Why)
			}
			sealed := len(d.Put.Seal) == 1 && d.Put.Seal[0].Instance == "janus-3"
			if want := c.goes && c.top.State != "lost"; sealed != want {
				t.Errorf("seals %v", d.Put.Seal)
			}
			if want := c.goes && c.top.RoomsLeft > 0 && c.top.State != "lost"; want != (sealed && d.Put.Seal[0].Occupied) {
				t.Errorf("occupied: got %v, want %v", d.Put.Seal, want)
			}
		})
	}
}

// TestG3_LostAndBack: one that was fenced and answers again, with people on it, is not taken away.
func TestG3_LostAndBack(t *testing.T) {
	tg := target(t)
	in := instance(3, 12)
	in.State, in.RoomsLeft = "lost", 0
	f := facts(t, 4, record(t, tg, 4), tg, append(row(3, 10), in)...)
	if d := decide(f, tg); d.Desired != 4 || len(d.Put.Seal) > 0 {
		t.Errorf("got %s, seals %v; want 4", d.Why, d.Put.Seal)
	}
}

// TestG3_StartingInRange: the number does not fall below an instance that may still be starting, only to rise again.
func TestG3_StartingInRange(t *testing.T) {
	for since, want := range map[time.Duration]int{179 * time.Second: 4, 181 * time.Second: 3} {
		tg := target(t)
		rec := record(t, tg, 4)
		rec.InRange = []scaler.Sample{{At: now - since.Milliseconds(), N: 3}}
		f := facts(t, 4, rec, tg, row(3, 30)...)
		if d := decide(f, tg); d.Desired != want {
			t.Errorf("in range for %s: got %s, want %d", since, d.Why, want)
		}
	}
}

func TestG3_RefusedReleaseStays(t *testing.T) {
	tg := target(t)
	f := facts(t, 4, record(t, tg, 4), tg, append(row(2, 30), vacated(2, time.Hour), vacated(3, time.Hour))...)
	d := scaler.Decide(scaler.Input{Facts: f, Ref: object, Target: tg, Refused: []string{"janus-2"}})
	if d.Desired != 3 || len(d.Put.Seal) != 1 || d.Put.Seal[0].Instance != "janus-3" {
		t.Errorf("got %d, seals %v: want 3 and janus-3 alone", d.Desired, d.Put.Seal)
	}
}

// TestG3_AboveTheNumber: what somebody started by hand is not cut off by an answer that did not know of it.
func TestG3_AboveTheNumber(t *testing.T) {
	tg := target(t)
	f := facts(t, 4, record(t, tg, 4), tg, append(row(4, 30), instance(4, 0), instance(6, 3))...)
	d := decide(f, tg)
	if d.Desired != 7 || d.Why.Rule != scaler.RuleAdopt {
		t.Fatalf("got %s, want 7 by adopt", d.Why)
	}
	if got, want := d.Put.GuardMS, int64(100_000); got != want {
		t.Errorf("guard: got %d ms, want %d: the answer before is about to be carried out", got, want)
	}
	f = apply(f, d)
	f.Instances = append(row(4, 30), vacated(4, time.Hour), vacated(6, time.Hour))
	for at := time.Duration(0); at < 9*time.Minute; at += 5 * time.Second {
		f = later(f, 5*time.Second)
		d = decide(f, tg)
		if d.Desired != 7 {
			t.Fatalf("within the cool-down: got %s, want 7", d.Why)
		}
		f = apply(f, d)
	}
	t.Run("even when it is marked and empty it goes by way of a release", func(t *testing.T) {
		f := facts(t, 4, record(t, tg, 4), tg, append(row(4, 30), vacated(5, time.Hour))...)
		if d := decide(f, tg); d.Desired != 6 {
			t.Errorf("got %s, want 6", d.Why)
		}
	})
}
