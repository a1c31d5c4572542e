package scaler_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/scaler"
)

// drawWorkload draws a StatefulSet that has or has not followed the stored number, with pods in any condition.
func drawWorkload(t *rapid.T, f brokerapi.PoolFacts, tg scaler.Target) *scaler.Workload {
	stored := 0
	if f.Plan != nil {
		stored = f.Plan.Desired
	}
	tolerance := rapid.SampledFrom([]float64{0, 0.1}).Draw(t, "tolerance")
	w := scaled(max(0, stored+rapid.SampledFrom([]int{0, 0, 0, -3, -1, 1, 4}).Draw(t, "off")), 0, tolerance, tg.MaxInstances)
	w.Minimum, w.HPA.WindowMS = tg.MinInstances, rapid.SampledFrom([]int64{-1, 60_000}).Draw(t, "window")
	for i := range 18 {
		there := i < w.Replicas
		if rapid.IntRange(0, 9).Draw(t, "other") == 0 {
			there = !there
		}
		if !there {
			continue
		}
		p := pods(i)[0]
		p.Terminating = i >= w.Replicas || rapid.IntRange(0, 14).Draw(t, "ends") == 0
		p.Started = rapid.IntRange(0, 5).Draw(t, "started") > 0
		p.Unschedulable = !p.Started && rapid.Bool().Draw(t, "waits")
		p.AgeMS = rapid.Int64Range(0, 400_000).Draw(t, "age of pod")
		w.Pods = append(w.Pods, p)
	}
	w.Status = len(w.Pods)
	return &w
}

func TestDecide_PropertiesOnKubernetes(t *testing.T) {
	t.Run("no number is below a pod that may have people on it", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			f, tg := drawFacts(rt, t)
			w := drawWorkload(rt, f, tg)
			d := decideOn(f, tg, w)
			if d.Desired < d.Why.Floor {
				rt.Fatalf("below the floor: %s", d.Why)
			}
			instances := map[int]brokerapi.Instance{}
			for _, in := range f.Instances {
				if in.State != "lost" {
					instances[in.Ordinal] = in
				}
			}
			for _, p := range w.Pods {
				_, known := instances[p.Ordinal]
				if p.Ordinal >= d.Desired && p.Ordinal < d.Stored && p.Started && !known && !(p.Terminating && p.Ordinal >= w.Replicas) {
					rt.Fatalf("pod %d, which the broker does not know, is taken away: %s", p.Ordinal, d.Why)
				}
			}
		})
	})
	t.Run("what the autoscaler makes of the answer is not below the floor, its own bounds aside", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			f, tg := drawFacts(rt, t)
			w := drawWorkload(rt, f, tg)
			d := decideOn(f, tg, w)
			v, err := w.Answer(d.Desired)
			if err != nil {
				return
			}
			if got := autoscale(v, w.Status, w.HPA); got < min(d.Why.Floor, w.HPA.Maximum) {
				rt.Fatalf("answered %g and reached %d, below the floor: %s", v, got, d.Why)
			}
		})
	})
	t.Run("what the load needs is reached, or the autoscaler is at its maximum", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			f, tg := drawFacts(rt, t)
			w := drawWorkload(rt, f, tg)
			f.Queue.Participants += rapid.IntRange(0, 120).Draw(rt, "more queued")
			d := decideOn(f, tg, w)
			if rapid.Bool().Draw(rt, "near") { // to what is needed
				w.Replicas = max(1, min(d.Why.Dnow, w.Maximum)-1)
				w.Pods = pods(upTo(w.Replicas)...)
				w.Status = w.Replicas
				d = decideOn(f, tg, w)
			}
			need := min(d.Why.Dnow, w.Maximum)
			if need <= w.Replicas {
				return
			}
			v, err := w.Answer(d.Desired)
			if err != nil {
				rt.Fatalf("%d are needed and %d asked for: %v; %s", need, w.Replicas, err, d.Why)
			}
			if got := autoscale(v, w.Status, w.HPA); got < need {
				rt.Fatalf("answered %g and reached %d of %d: %s", v, got, need, d.Why)
			}
		})
	})
	t.Run("without the API server's own word nothing is lowered and no release ends", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			f, tg := drawFacts(rt, t)
			d := scaler.Decide(scaler.Input{Facts: f, Ref: object, Target: tg, Cluster: drawWorkload(rt, f, tg)})
			if d.Desired < d.Stored || len(d.Put.Unseal) > 0 {
				rt.Fatalf("%s, unseals %v", d.Why, d.Put.Unseal)
			}
		})
	})
	t.Run("a decision that was carried out is followed by no other number", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			f, tg := drawFacts(rt, t)
			w := drawWorkload(rt, f, tg)
			first := decideOn(f, tg, w)
			second := decideOn(apply(f, first), tg, w)
			if second.Desired < first.Desired && first.Desired <= tg.MaxInstances {
				rt.Fatalf("%s, then %s", first.Why, second.Why)
			}
		})
	})
}
