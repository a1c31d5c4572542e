package scaler_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/scaler"
)

// TestG4_UnknownNeverLowers: eight of ten instances are marked and long empty, and the load has long been
// low: the number would be 2. Each case takes one piece of knowledge away.
func TestG4_UnknownNeverLowers(t *testing.T) {
	idle := func() []brokerapi.Instance {
		in := row(2, 10)
		for i := 2; i < 10; i++ {
			in = append(in, vacated(i, 30*time.Minute))
		}
		return in
	}
	cases := []struct {
		name string
		edit func(*brokerapi.PoolFacts, *scaler.Record)
		want int
	}{
		{"with all of it, it falls", func(*brokerapi.PoolFacts, *scaler.Record) {}, 2},
		{"no instance is known", func(f *brokerapi.PoolFacts, _ *scaler.Record) { f.Instances = nil }, 10},
		{"all data is old", func(f *brokerapi.PoolFacts, _ *scaler.Record) {
			for i := range f.Instances {
				f.Instances[i].AgeMS = ptr(int64(31_000))
			}
		}, 10},
		{"no instance tells a number or an age", func(f *brokerapi.PoolFacts, _ *scaler.Record) {
			for i := range f.Instances {
				f.Instances[i].AgeMS, f.Instances[i].Sessions = nil, nil
			}
		}, 13}, // all count as full, and two are made up for
		{"the highest tells nothing", func(f *brokerapi.PoolFacts, _ *scaler.Record) { f.Instances[9].AgeMS = nil }, 10},
		{"one in the middle tells nothing", func(f *brokerapi.PoolFacts, _ *scaler.Record) { f.Instances[6].AgeMS = nil }, 7},
		{"nobody decided for a while", func(_ *brokerapi.PoolFacts, rec *scaler.Record) { rec.At = now - 16_000 }, 10},
		{"the broker saw nothing for a while", func(f *brokerapi.PoolFacts, _ *scaler.Record) { f.GapMS = ptr(int64(10)) }, 10},
		{"a gap before the last decision has been reckoned with", func(f *brokerapi.PoolFacts, _ *scaler.Record) { f.GapMS = ptr(int64(1000)) }, 2},
		{"the load was high within the cool-down", func(_ *brokerapi.PoolFacts, rec *scaler.Record) {
			rec.Peaks = []scaler.Sample{{At: now - 599_000, N: 6}}
		}, 6},
		{"the load was high before the cool-down", func(_ *brokerapi.PoolFacts, rec *scaler.Record) {
			rec.Peaks = []scaler.Sample{{At: now - 601_000, N: 6}}
		}, 2},
		{"the record has another format", func(_ *brokerapi.PoolFacts, rec *scaler.Record) { rec.Format = 2 }, 10},
		{"the record is of a later time", func(_ *brokerapi.PoolFacts, rec *scaler.Record) { rec.At = now + 1 }, 10},
		{"there is no plan, only a floor", func(f *brokerapi.PoolFacts, _ *scaler.Record) { f.Plan, f.Floor = nil, 4 }, 10},
		{"there is no plan and the floor is above all that is known", func(f *brokerapi.PoolFacts, _ *scaler.Record) { f.Plan, f.Floor = nil, 12 }, 12},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tg := target(t)
			rec := record(t, tg, 10)
			c.edit(&brokerapi.PoolFacts{Instances: idle()}, &rec)
			f := facts(t, 10, rec, tg, idle()...)
			c.edit(&f, &rec)
			if d := decide(f, tg); d.Desired != c.want {
				t.Errorf("got %d, want %d: %s", d.Desired, c.want, d.Why)
			}
		})
	}
	t.Run("the record is no record", func(t *testing.T) {
		tg := target(t)
		f := facts(t, 10, record(t, tg, 10), tg, idle()...)
		f.Plan.Body = json.RawMessage(`"?"`)
		d := decide(f, tg)
		if d.Desired != 10 || len(d.Risks) != 1 || d.Risks[0].Code != scaler.RiskRecord || !d.Store {
			t.Errorf("got %d, risks %v, store %v: want 10, one risk, and a new record", d.Desired, d.Risks, d.Store)
		}
	})
	t.Run("the first number of a term is no lower than its floor, whatever the maximum", func(t *testing.T) {
		tg := target(t, "maxInstances", "4")
		f := facts(t, 10, record(t, tg, 10), tg, row(2, 10)...)
		f.Plan, f.Floor = nil, 9
		if d := decide(f, tg); d.Desired != 9 {
			t.Errorf("got %s, want 9", d.Why)
		}
	})
	t.Run("no number while the directory is being rebuilt", func(t *testing.T) {
		tg := target(t)
		f := facts(t, 10, record(t, tg, 10), tg, idle()...)
		f.Phase = brokerapi.PhaseRebuilding
		want := scaler.Decision{Hold: scaler.HoldRebuilding}
		if diff := cmp.Diff(want, decide(f, tg), cmp.AllowUnexported(scaler.Target{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestG4_UnknownLoadCountsAsFull(t *testing.T) {
	tg := target(t)
	in := row(4, 30)
	in[1].Sessions = nil
	d := decide(facts(t, 4, record(t, tg, 4), tg, in...), tg)
	if got, want := d.Why.Load, 3*30+50; got != want {
		t.Errorf("load: got %d, want %d", got, want)
	}
}

// TestG4_Replacements: what is broken is made up for, but a fault that all share does not multiply the pool.
func TestG4_Replacements(t *testing.T) {
	broken := map[string]func(int) brokerapi.Instance{
		"silent":              func(i int) brokerapi.Instance { in := instance(i, 40); in.AgeMS = ptr(int64(60_000)); return in },
		"suspect":             func(i int) brokerapi.Instance { return marked(instance(i, 40), "broker", time.Minute, nil) },
		"not started in time": func(i int) brokerapi.Instance { return starting(i, 181*time.Second) },
		"lost":                func(i int) brokerapi.Instance { in := instance(i, 0); in.State = "lost"; return in },
	}
	dloadWith := func(t *testing.T, n int, make func(int) brokerapi.Instance) int {
		tg := target(t, "spareSessions", "0")
		in := row(10, 40)
		for i := range n {
			in[i] = make(i)
		}
		f := facts(t, 10, record(t, tg, 10), tg, in...)
		f.Queue.Participants = 10*50 - decide(f, tg).Why.Load // needs all ten
		return decide(f, tg).Why.Dload
	}
	for what, make := range broken {
		t.Run(what, func(t *testing.T) {
			for n, want := range []int{10, 11, 12, 12, 12, 12} {
				if got := dloadWith(t, n, make); got != want {
					t.Errorf("%d of them: got %d, want %d", n, got, want)
				}
			}
		})
	}
	t.Run("one that has not answered yet counts as coming, though the broker suspects it", func(t *testing.T) {
		early := func(i int) brokerapi.Instance { return marked(starting(i, time.Minute), "broker", time.Minute, nil) }
		if got := dloadWith(t, 1, early); got != 10 {
			t.Errorf("got %d, want 10", got)
		}
	})
	t.Run("what another owner takes away is always made up for", func(t *testing.T) {
		operator := func(i int) brokerapi.Instance { return marked(instance(i, 40), "operator", time.Minute, nil) }
		if got := dloadWith(t, 5, operator); got != 15 {
			t.Errorf("got %d, want 15", got)
		}
	})
	t.Run("a missing one counts until its start timeout is over", func(t *testing.T) {
		for since, want := range map[time.Duration]int{179 * time.Second: 10, 181 * time.Second: 11} {
			tg := target(t, "spareSessions", "0")
			rec := record(t, tg, 10)
			rec.InRange = []scaler.Sample{{At: now - since.Milliseconds(), N: 9}}
			f := facts(t, 10, rec, tg, row(9, 50)...)
			f.Queue.Participants = 50
			if got := decide(f, tg).Why.Dload; got != want {
				t.Errorf("after %s: got %d, want %d", since, got, want)
			}
		}
	})
}

// TestDecide_MarksAreRateLimited: one wrong number cannot close the pool.
func TestDecide_MarksAreRateLimited(t *testing.T) {
	tg := target(t, "maxInstances", "100")
	f := facts(t, 80, record(t, tg, 80), tg, row(80, 1)...)
	total := 0
	for _, want := range []int{8, 0, 8, 8} {
		d := decide(f, tg)
		if len(d.Cordon) != want {
			t.Fatalf("got %d marks, want %d", len(d.Cordon), want)
		}
		for i, got := range d.Cordon {
			if want := name(79 - total - i); got != want {
				t.Fatalf("mark %d: got %s, want %s", total+i, got, want)
			}
		}
		total += len(d.Cordon)
		f = apply(f, d)
		if want > 0 && total > 8 || want == 0 {
			f = later(f, 60*time.Second)
			rec := readRecord(t, f.Plan.Body)
			rec.At = f.NowMS - 1000 // somebody decided meanwhile
			rec.Cordoned.At = min(rec.Cordoned.At, f.NowMS-60_000)
			f.Plan.Body = []byte(mustJSON(t, rec))
		}
	}
}

func mustJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestDecide_HistoryIsBounded: changing load leaves a short record, and the cool-down never forgets a maximum
// before its time, although not every decision is recorded, nor keeps it for much longer.
func TestDecide_HistoryIsBounded(t *testing.T) {
	tg := target(t, "maxInstances", "1000", "cooldownWindow", "64s", "spareSessions", "0", "minInstances", "0")
	f := facts(t, 50, record(t, tg, 50), tg, row(50, 0)...)
	var seen []int
	greatest := func(last int) int { return slices.Max(seen[max(0, len(seen)-last):]) }
	for step := range 2000 {
		// A fall within each 90 s, now fast and now slow, from heights that differ.
		f.Queue.Participants = max(0, 50*(20+step/90%7*5)-(step%90)*(10+step/90%5*20))
		d := decide(f, tg)
		seen = append(seen, d.Why.Dnow)
		if low, high := greatest(65), greatest(64+2+6); step > 80 && (d.Why.Dcool < low || d.Why.Dcool > high) {
			t.Fatalf("step %d: cool-down %d, want %d to %d", step, d.Why.Dcool, low, high)
		}
		f = apply(f, d)
		if rec := readRecord(t, f.Plan.Body); len(rec.Peaks) > 64 || len(rec.Lows) > 64 || len(rec.InRange) > 64 {
			t.Fatalf("step %d: %d peaks, %d lows, %d steps", step, len(rec.Peaks), len(rec.Lows), len(rec.InRange))
		}
		f = later(f, time.Second)
	}
	if n := len(f.Plan.Body); n > 8000 {
		t.Errorf("the record has %d bytes", n)
	}
}

func TestDecide_OnePoolOneScaledObject(t *testing.T) {
	tg := target(t)
	other := scaler.Ref{Namespace: "media", Name: "copy"}
	for silent, want := range map[time.Duration]scaler.Hold{299 * time.Second: scaler.HoldTaken, 301 * time.Second: scaler.HoldNone} {
		t.Run(fmt.Sprintf("the first silent for %s", silent), func(t *testing.T) {
			rec := record(t, tg, 4)
			rec.CalledAt = now - silent.Milliseconds()
			d := scaler.Decide(scaler.Input{Facts: facts(t, 4, rec, tg, row(4, 10)...), Ref: other, Target: tg})
			if d.Hold != want {
				t.Fatalf("hold: got %q, want %q", d.Hold, want)
			}
			if want == scaler.HoldTaken && d.Owner != object {
				t.Errorf("owner: got %s, want %s", d.Owner, object)
			}
			if want == scaler.HoldNone && readRecord(t, d.Put.Body).Ref != other {
				t.Errorf("the pool did not change hands")
			}
		})
	}
}

func TestDecide_SilentTakesNothingOver(t *testing.T) {
	tg := target(t)
	rec := record(t, tg, 4)
	rec.CalledAt = now - 600_000
	f := facts(t, 4, rec, tg, row(4, 10)...)
	for silent, want := range map[time.Duration]scaler.Hold{5 * time.Minute: scaler.HoldTaken, 4 * time.Minute: scaler.HoldNone} {
		d := scaler.Decide(scaler.Input{Facts: f, Ref: scaler.Ref{Namespace: "media", Name: "copy"}, Target: tg, Silent: silent})
		if d.Hold != want {
			t.Errorf("silent itself for %s: got %q, want %q", silent, d.Hold, want)
		}
	}
}

// TestDecide_NewestMetadata: a replica that KEDA has not asked since the trigger was edited plans by the
// newer metadata that another replica has stored.
func TestDecide_NewestMetadata(t *testing.T) {
	older, newer := target(t), target(t, "targetSessionsPerInstance", "10")
	f := facts(t, 4, record(t, newer, 4), newer, row(4, 10)...)
	for silent, want := range map[time.Duration]int{2 * time.Second: 10, 0: 50} {
		d := scaler.Decide(scaler.Input{Facts: f, Ref: object, Target: older, Silent: silent})
		if d.Target.PerInstance != want {
			t.Errorf("silent %s: got target %d, want %d", silent, d.Target.PerInstance, want)
		}
	}
}
