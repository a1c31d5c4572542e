package scaler_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/scaler"
)

func drawInstance(t *rapid.T, i int) brokerapi.Instance {
	sessions := rapid.IntRange(0, 12).Draw(t, "sessions")
	in := instance(i, sessions)
	in.AgeMS = ptr(rapid.SampledFrom([]int64{0, 5000, 30_000, 31_000}).Draw(t, "age"))
	if rapid.IntRange(0, 9).Draw(t, "kind") == 0 {
		in = starting(i, time.Duration(rapid.IntRange(0, 300).Draw(t, "known"))*time.Second)
	}
	if rapid.Bool().Draw(t, "vacant") {
		in.Sessions, in.RoomsLeft = ptr(0), 0
	}
	for _, owner := range []string{"scaler", "hook", "operator", "broker"} {
		often := 12
		if owner == "scaler" {
			often = 2
		}
		if rapid.IntRange(1, often).Draw(t, owner) == 1 {
			in = marked(in, owner, time.Duration(rapid.IntRange(0, 5000).Draw(t, "age of mark"))*time.Second, nil)
		}
	}
	if len(in.Marks) > 0 && in.RoomsLeft == 0 && in.Sessions != nil && *in.Sessions == 0 {
		in.EmptyMS = ptr(rapid.Int64Range(0, 120_000).Draw(t, "empty"))
	}
	if rapid.IntRange(0, 9).Draw(t, "state") == 0 {
		in.State = rapid.SampledFrom([]string{"released", "lost"}).Draw(t, "gone")
	}
	return in
}

// drawFacts draws a pool in any condition, with or without a plan, and what the trigger asks for.
func drawFacts(t *rapid.T, tb testing.TB) (brokerapi.PoolFacts, scaler.Target) {
	tg := target(tb,
		"targetSessionsPerInstance", "10", "spareSessions", fmt.Sprint(rapid.IntRange(0, 15).Draw(t, "spare")),
		"minInstances", fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "min")), "maxInstances", fmt.Sprint(rapid.IntRange(3, 20).Draw(t, "max")),
		"onGraceExpired", rapid.SampledFrom([]string{"release", "hold"}).Draw(t, "policy"),
		"maxReplacements", fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "replacements")))
	var in []brokerapi.Instance
	for i := range rapid.IntRange(0, 14).Draw(t, "instances") {
		if rapid.IntRange(0, 9).Draw(t, "there") > 0 {
			in = append(in, drawInstance(t, i))
		}
	}
	r := rapid.IntRange(0, 14).Draw(t, "stored")
	rec := record(tb, tg, r)
	rec.Needed = rapid.IntRange(0, 5).Draw(t, "needed")
	at := now - 300_000
	for n := 14; n > 0; n -= rapid.IntRange(1, 14).Draw(t, "fall") {
		if at += rapid.Int64Range(1, 200_000).Draw(t, "later"); at >= now-1000 {
			break
		}
		rec.Peaks = append(rec.Peaks, scaler.Sample{At: at, N: n})
	}
	if rapid.Bool().Draw(t, "was lower") {
		rec.Lowered = now - rapid.Int64Range(1000, 200_000).Draw(t, "lowered")
		rec.Lows = []scaler.Sample{{At: rec.Lowered, N: max(0, r-2)}, {At: now - 1000, N: r}}
	}
	f := facts(tb, r, rec, tg, in...)
	f.Queue.Participants = rapid.IntRange(0, 30).Draw(t, "queued")
	if rapid.IntRange(0, 4).Draw(t, "term") == 0 {
		f.Plan, f.Floor = nil, r
	}
	return f, tg
}

func TestDecide_Properties(t *testing.T) {
	t.Run("no number is below an instance that may not go", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			f, tg := drawFacts(rt, t)
			d := decide(f, tg)
			if d.Desired < d.Why.Floor {
				rt.Fatalf("below the floor: %s", d.Why)
			}
			for _, in := range f.Instances {
				if in.Ordinal < d.Desired || in.State == "lost" || in.State == "released" && in.Ordinal >= d.Why.Previous {
					continue
				}
				own := slices.ContainsFunc(in.Marks, func(m brokerapi.Mark) bool { return m.Owner == "scaler" })
				isEmpty := in.AgeMS != nil && *in.AgeMS <= 30_000 && *in.Sessions == 0 && in.EmptyMS != nil && *in.EmptyMS >= 60_000
				expired := tg.OnGraceExpired == "release" && slices.ContainsFunc(in.Marks, func(m brokerapi.Mark) bool { return m.Owner == "scaler" && m.AgeMS >= 3_600_000 })
				if !own || !isEmpty && !expired && in.AgeMS != nil {
					rt.Fatalf("%+v is taken away: %s", in, d.Why)
				}
			}
		})
	})
	t.Run("more load never means a lower number", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			f, tg := drawFacts(rt, t)
			before := decide(f, tg)
			more := f
			more.Queue.Participants += rapid.IntRange(0, 20).Draw(rt, "more queued")
			more.Instances = slices.Clone(f.Instances)
			for i := range more.Instances {
				if in := &more.Instances[i]; in.Sessions != nil {
					in.Sessions = ptr(*in.Sessions + rapid.IntRange(0, 5).Draw(rt, "more"))
				}
			}
			if after := decide(more, tg); after.Desired < before.Desired {
				rt.Fatalf("%s\nbecame with more load\n%s", before.Why, after.Why)
			}
		})
	})
	t.Run("without fresh data there is no lower number", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			f, tg := drawFacts(rt, t)
			for i := range f.Instances {
				f.Instances[i].AgeMS = rapid.SampledFrom([]*int64{nil, ptr(int64(31_000))}).Draw(rt, "age")
			}
			if d := decide(f, tg); d.Desired < d.Why.Previous {
				rt.Fatal(d.Why)
			}
		})
	})
	t.Run("a decision that was carried out leaves nothing to do", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			f, tg := drawFacts(rt, t)
			first := decide(f, tg)
			second := decide(apply(f, first), tg)
			switch {
			case first.Desired > tg.MaxInstances && (first.Why.Rule == scaler.RuleAdopt || f.Plan == nil): // no cool-down for that
				return
			case len(first.Put.Unseal) > 0: // it is load and capacity again, and a matter of marks
				if second.Desired < first.Desired {
					rt.Fatalf("%s, then %s", first.Why, second.Why)
				}
				return
			}
			if second.Desired != first.Desired || len(second.Put.Seal)+len(second.Put.Unseal)+len(second.Cordon)+len(second.Uncordon) > 0 || second.Store && second.Why.Dnow <= first.Why.Dnow {
				rt.Fatalf("%s, then %s; store %v, seals %v, unseals %v, marks %v, removes %v",
					first.Why, second.Why, second.Store, second.Put.Seal, second.Put.Unseal, second.Cordon, second.Uncordon)
			}
		})
	})
	t.Run("none is started while one that the scaler has marked would do", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			f, tg := drawFacts(rt, t)
			d := decide(f, tg)
			if d.Desired <= d.Why.Previous {
				return
			}
			for _, in := range f.Instances {
				own := slices.ContainsFunc(in.Marks, func(m brokerapi.Mark) bool { return m.Owner == "scaler" })
				if own && in.State == "cordoned" && in.Ordinal < d.Why.Dnow && in.Ordinal < tg.MaxInstances && !slices.Contains(d.Uncordon, in.Name) {
					rt.Fatalf("%s stays marked: %s", in.Name, d.Why)
				}
			}
		})
	})
	t.Run("the order of the instances does not matter", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			f, tg := drawFacts(rt, t)
			first := decide(f, tg)
			f.Instances = slices.Clone(f.Instances)
			slices.Reverse(f.Instances)
			if second := decide(f, tg); second.Why != first.Why || !slices.Equal(first.Cordon, second.Cordon) {
				rt.Fatalf("%s\n%s", first.Why, second.Why)
			}
		})
	})
}

func BenchmarkDecide(b *testing.B) {
	for _, size := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			tg := target(b, "maxInstances", "20000")
			in := row(size, 40)
			for i := size / 2; i < size; i++ {
				in[i] = vacated(i, time.Hour)
			}
			f := facts(b, size, record(b, tg, size), tg, in...)
			for b.Loop() {
				decide(f, tg)
			}
		})
	}
}
