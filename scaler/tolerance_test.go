package scaler_test

import (
	"math"
	"strings"
	"testing"

	"github.com/roomscaler/roomscaler/scaler"
)

// autoscale is the arithmetic of the HPA for an external metric with AverageValue 1, from its own description: within the
// tolerance the pods that exist, else the value rounded up; then the bounds.
func autoscale(value float64, pods int, h *scaler.Autoscaler) int {
	up, down, low, high := 0.1, 0.1, 1, math.MaxInt
	if h != nil {
		up, down, low, high = h.ScaleUp, h.ScaleIn, max(h.Minimum, 1), h.Maximum
	}
	usage := int64(math.Round(value * 1000)) // KEDA writes thousandths
	n := int(math.Ceil(float64(usage) / 1000))
	if pods > 0 {
		if ratio := float64(usage) / (1000 * float64(pods)); 1-down <= ratio && ratio <= 1+up {
			n = pods
		}
	}
	return min(max(n, low), high)
}

// scaled is a workload of r replicas and s pods with the tolerance.
func scaled(r, s int, tolerance float64, maximum int) scaler.Workload {
	return scaler.Workload{
		Name: "janus", Replicas: r, Status: s, Minimum: 1, Maximum: maximum,
		HPA: &scaler.Autoscaler{Name: "keda-hpa-janus", Minimum: 1, Maximum: maximum, ScaleUp: tolerance, ScaleIn: tolerance, WindowMS: -1},
	}
}

// TestG3_ToleranceNeverMissesLow: with every number of replicas and pods and every stored number, what is answered leads to the
// stored number exactly, or is no answer.
func TestG3_ToleranceNeverMissesLow(t *testing.T) {
	for _, tolerance := range []float64{0, 0.1, 0.05, 0.33} {
		answered := 0
		for r := 1; r <= 100; r++ {
			for s := max(0, r-3); s <= r+3; s++ {
				w := scaled(r, s, tolerance, 1000)
				for n := 1; n <= 120; n++ {
					v, err := w.Answer(n)
					if err != nil {
						if tolerance == 0 {
							t.Fatalf("tolerance 0, %d replicas, %d pods, wanted %d: %v", r, s, n, err)
						}
						continue
					}
					answered++
					if got := autoscale(v, s, w.HPA); got != n {
						t.Fatalf("tolerance %g, %d replicas, %d pods, wanted %d: answered %g, reached %d", tolerance, r, s, n, v, got)
					}
				}
			}
		}
		if answered < 50_000 {
			t.Errorf("tolerance %g: %d of 84000 were answered", tolerance, answered)
		}
	}
}

// TestG3_ToleranceWithPodsThatComeAndGo: an answer to a pool that grows does not scale in when a pod is lost, or one more is
// seen, before the autoscaler looks.
func TestG3_ToleranceWithPodsThatComeAndGo(t *testing.T) {
	for r := 1; r <= 100; r++ {
		w := scaled(r, r, 0.1, 1000)
		for n := r; n <= 120; n++ {
			v, err := w.Answer(n)
			if err != nil {
				continue
			}
			for s := max(0, r-5); s <= r+1; s++ {
				if got := autoscale(v, s, w.HPA); got < r {
					t.Fatalf("%d replicas, wanted %d: answered %g, and with %d pods reached %d", r, n, v, s, got)
				}
			}
		}
	}
}

func TestTolerance_Reachable(t *testing.T) {
	for _, c := range []struct {
		name       string
		r, s, n    int
		max        int
		value      float64
		hold       string
		andReaches int
	}{
		{"a small pool is exact", 8, 8, 8, 60, 8, "", 8},
		{"and while one drains", 8, 9, 8, 60, 8, "", 8},
		{"one less of ten, by a value below it", 10, 10, 9, 60, 8.001, "", 9},
		{"two less of twenty", 20, 20, 18, 60, 17.001, "", 18},
		{"one less of twenty: no value", 20, 20, 19, 60, 0, "hold at 20 replicas: 19 are wanted", 0},
		{"one more of twenty: no value", 20, 20, 21, 60, 0, "hold at 20 replicas: 21 are wanted", 0},
		{"three more of twenty", 20, 20, 23, 60, 23, "", 23},
		{"the present number is held by no answer", 20, 20, 20, 60, 0, "hold at 20 replicas: within", 0},
		{"also while a pod drains: it must not come back", 19, 20, 19, 60, 0, "hold at 19 replicas: within", 0},
		{"also while one has not been made: the highest must not go", 20, 19, 20, 60, 0, "hold at 20 replicas: within", 0},
		{"the maximum is reached from just below", 18, 18, 19, 19, 20, "", 19},
		{"nothing at all", 2, 2, 0, 60, 0, "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := scaled(c.r, c.s, 0.1, c.max)
			v, err := w.Answer(c.n)
			switch {
			case c.hold != "":
				if err == nil || !strings.Contains(err.Error(), c.hold) || !strings.Contains(err.Error(), "tolerance to 0") {
					t.Fatalf("got %g, %v; want %q", v, err, c.hold)
				}
			case err != nil || v != c.value:
				t.Fatalf("got %g, %v; want %g", v, err, c.value)
			case autoscale(v, c.s, w.HPA) != c.andReaches:
				t.Errorf("reached %d, want %d", autoscale(v, c.s, w.HPA), c.andReaches)
			}
		})
	}
	t.Run("without an autoscaler the one that will be made is assumed to have the cluster's tolerance", func(t *testing.T) {
		w := scaled(20, 20, 0, 60)
		w.HPA = nil
		if v, err := w.Answer(21); err == nil {
			t.Errorf("got %g", v)
		}
	})
}
