package broker_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/roomscaler/roomscaler/broker"
	"pgregory.net/rapid"
)

func ready(name string, load int) broker.Instance {
	o, _ := broker.OrdinalOf(name)
	return broker.Instance{Name: name, Ordinal: o, Incarnation: "n-" + name, Sessions: load}
}

func TestPlace(t *testing.T) {
	pool := broker.Facts{Instances: []broker.Instance{ready("j-0", 30), ready("j-1", 10), ready("j-2", 10), ready("j-3", 50)}}
	marked := ready("j-4", 0)
	marked.Marks = []broker.Mark{{Owner: broker.OwnerHook}}
	failing := ready("j-5", 0)
	failing.Failures = 1
	for _, c := range []struct {
		name  string
		facts broker.Facts
		req   broker.PlaceRequest
		want  []string
	}{
		{"least-loaded prefers the least load, of equals the lower ordinal", pool, broker.PlaceRequest{Placement: broker.LeastLoaded, Expected: 2}, []string{"j-1", "j-2", "j-0", "j-3"}},
		{"packed fills the lowest below target, then the least loaded", pool, broker.PlaceRequest{Placement: broker.Packed, Target: 20, Expected: 2}, []string{"j-1", "j-2", "j-0", "j-3"}},
		{"packed keeps to ordinals below target", pool, broker.PlaceRequest{Placement: broker.Packed, Target: 40, Expected: 2}, []string{"j-0", "j-1", "j-2", "j-3"}},
		{"round-robin begins at its turn", pool, broker.PlaceRequest{Placement: broker.RoundRobin, Turn: 6}, []string{"j-2", "j-3", "j-0", "j-1"}},
		{"no instance beyond its limit", pool, broker.PlaceRequest{Placement: broker.LeastLoaded, Expected: 2, Max: 31}, []string{"j-1", "j-2"}},
		{"a refusing instance is skipped", pool, broker.PlaceRequest{Skip: map[string]bool{"j-1": true}}, []string{"j-2", "j-0", "j-3"}},
		{
			"one that this broker has not itself identified takes nothing", pool,
			broker.PlaceRequest{Identified: map[string]string{"j-0": "n-j-0", "j-1": "of a life before"}}, []string{"j-0"},
		},
		{"a marked instance takes nothing", broker.Facts{Instances: []broker.Instance{marked}}, broker.PlaceRequest{}, nil},
		{"one that failed its last look comes last", broker.Facts{Instances: []broker.Instance{failing, ready("j-9", 99)}}, broker.PlaceRequest{}, []string{"j-9", "j-5"}},
		{
			"no ordinal that the plan takes away", broker.Facts{Instances: pool.Instances, Plan: broker.Plan{Version: 1, Desired: 2}},
			broker.PlaceRequest{}, []string{"j-1", "j-0"},
		},
		{
			"no ordinal that a lower plan, still served, takes away",
			broker.Facts{Instances: pool.Instances, StoreState: broker.StoreState{Now: 5}, Plan: broker.Plan{Version: 2, Desired: 4, Guards: []broker.Guard{{Below: 1, Until: 10}, {Below: 3, Until: 20}}}},
			broker.PlaceRequest{}, []string{"j-0"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, _ := broker.Place(c.facts, c.req)
			var names []string
			for _, g := range got {
				names = append(names, g.Instance)
			}
			if d := cmp.Diff(names, c.want); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestPlace_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f broker.Facts
		f.Now = broker.PoolTime(rapid.IntRange(0, 20).Draw(t, "now"))
		f.Plan = broker.Plan{Version: rapid.Int64Range(0, 1).Draw(t, "v"), Desired: rapid.IntRange(0, 12).Draw(t, "d"), Guards: []broker.Guard{{Below: rapid.IntRange(0, 12).Draw(t, "g"), Until: 10}}}
		for i := range rapid.IntRange(0, 12).Draw(t, "n") {
			in := ready(fmt.Sprintf("j-%d", i), rapid.IntRange(0, 60).Draw(t, "load"))
			switch rapid.IntRange(0, 7).Draw(t, "state") {
			case 0:
				in.Marks = []broker.Mark{{Owner: broker.OwnerScaler}}
			case 1:
				in.Seal = &broker.Seal{}
			case 2:
				in.Lost = true
			case 3:
				in.LookBegin = broker.Never
			}
			f.Instances = append(f.Instances, in)
		}
		r := broker.PlaceRequest{
			Placement: rapid.SampledFrom([]broker.Placement{broker.LeastLoaded, broker.Packed, broker.RoundRobin}).Draw(t, "p"),
			Expected:  rapid.IntRange(0, 5).Draw(t, "x"), Target: 30, Max: rapid.IntRange(0, 60).Draw(t, "max"), Turn: rapid.Uint64().Draw(t, "turn"),
		}
		got, _, _ := broker.Place(f, r)
		seen := map[string]bool{}
		for _, c := range got {
			for _, in := range f.Instances {
				if in.Name != c.Instance {
					continue
				}
				if in.State() != broker.StateReady || r.Max > 0 && in.Load()+r.Expected > r.Max || f.Plan.Version > 0 && in.Ordinal >= f.Plan.Desired {
					t.Fatalf("%s cannot take the room and is offered", in.Name)
				}
			}
			if seen[c.Instance] {
				t.Fatalf("%s is offered twice", c.Instance)
			}
			seen[c.Instance] = true
		}
		// The order of the facts does not matter.
		back := f
		back.Instances = append([]broker.Instance(nil), f.Instances...)
		for i, j := 0, len(back.Instances)-1; i < j; i, j = i+1, j-1 {
			back.Instances[i], back.Instances[j] = back.Instances[j], back.Instances[i]
		}
		again, _, _ := broker.Place(back, r)
		if d := cmp.Diff(got, again); d != "" {
			t.Fatal(d)
		}
	})
}
