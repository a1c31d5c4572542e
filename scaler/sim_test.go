package scaler_test

import (
	"testing"
	"time"
)

type simTotal struct{ held, scaleIns, cut, placed, outages, unknown, byHand, highest int }

func simulate(t *testing.T, runs int, o simOptions) simTotal {
	t.Helper()
	var total simTotal
	for seed := range runs {
		o.seed = uint64(seed)
		w := newWorld(t, o)
		w.run()
		total.held += w.held
		total.scaleIns += w.scaleIns
		total.cut += w.cut
		total.placed += w.placed
		total.outages += w.outages
		total.unknown += w.unknown
		total.byHand += w.byHand
		total.highest = max(total.highest, w.highest)
	}
	t.Logf("%+v", total)
	return total
}

// TestG3_MonteCarlo: hours of waves and bursts of rooms, two replicas that plan on views up to 3 s old, an autoscaler
// whose writes come up to 10 s after the answer, outages, and a hand that scales up. No room is cut off by a scale-in.
func TestG3_MonteCarlo(t *testing.T) {
	for name, tolerance := range map[string]float64{"tolerance 0": 0, "tolerance 0.1": 0.1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := simulate(t, 4, simOptions{tolerance: tolerance, length: 2 * time.Hour})
			if got.cut > 0 {
				t.Errorf("%d rooms were cut off", got.cut)
			}
			if got.scaleIns < 500 || got.outages < 3 || got.unknown == 0 || got.byHand == 0 || got.highest < 10 {
				t.Errorf("the run shows too little: %+v", got)
			}
		})
	}
	for name, tolerance := range map[string]float64{"on Kubernetes, tolerance 0": 0, "on Kubernetes, tolerance 0.1": 0.1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := simulate(t, 2, simOptions{kubernetes: true, tolerance: tolerance, length: time.Hour})
			if got.cut > 0 {
				t.Errorf("%d rooms were cut off", got.cut)
			}
			if got.scaleIns < 60 || got.outages < 3 || got.unknown == 0 || got.byHand == 0 || got.highest < 10 || (tolerance > 0) != (got.held > 0) {
				t.Errorf("the run shows too little: %+v", got)
			}
		})
	}
	t.Run("without the floor and the seal check rooms are cut off", func(t *testing.T) {
		t.Parallel()
		if got := simulate(t, 1, simOptions{noFloor: true, firstCut: true, length: 12 * time.Hour}); got.cut == 0 {
			t.Error("none was")
		}
	})
	t.Run("without the ledger and the guard rooms are cut off", func(t *testing.T) {
		t.Parallel()
		if got := simulate(t, 1, simOptions{noLedger: true, firstCut: true, length: 12 * time.Hour}); got.cut == 0 {
			t.Error("none was")
		}
	})
}
