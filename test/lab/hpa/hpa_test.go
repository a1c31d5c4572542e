package hpa_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/roomscaler/roomscaler/test/lab/hpa"
)

var (
	exact = hpa.Tolerance{}
	start = time.Unix(1_000_000, 0)
)

func one(value hpa.Milli) []hpa.Metric {
	return []hpa.Metric{{Name: "m", Value: value, Target: 1000}}
}

func TestReplicas(t *testing.T) {
	for _, tt := range []struct {
		name          string
		value, target hpa.Milli
		status        int
		tol           hpa.Tolerance
		want          int
	}{
		{"the value divided by the target is rounded up", 2001, 1000, 1, exact, 3},
		{"a target that is no divisor overshoots", 1000, 333, 3, exact, 4},
		{"one draining pod of ten is taken back within the tolerance", 9000, 1000, 10, hpa.DefaultTolerance, 10},
		{"one draining pod of five is not", 4000, 1000, 5, hpa.DefaultTolerance, 4},
		{"two draining pods of 22 raise the number to 22", 20_000, 1000, 22, hpa.DefaultTolerance, 22},
		{"a pod not yet created is dropped within the tolerance", 20_000, 1000, 19, hpa.DefaultTolerance, 19},
		{"without tolerance the status does not matter", 20_000, 1000, 22, exact, 20},
		{"no replica yet is outside any tolerance", 2000, 1000, 0, hpa.DefaultTolerance, 2},
		{"nothing wanted of nothing is outside any tolerance", 0, 1000, 0, hpa.DefaultTolerance, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := hpa.Replicas(hpa.Metric{Value: tt.value, Target: tt.target}, tt.status, tt.tol)
			if got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// TestReplicas_Reachable is which numbers d a scaler that serves d can reach from n replicas.
func TestReplicas_Reachable(t *testing.T) {
	unreachable := map[int][]int{1: nil, 9: nil, 10: {9, 11}, 20: {18, 19, 21, 22}, 30: {27, 28, 29, 31, 32, 33},
		50: {45, 46, 47, 48, 49, 51, 52, 53, 54, 55}}
	for n, want := range unreachable {
		t.Run(fmt.Sprintf("from %d with the default tolerance", n), func(t *testing.T) {
			var got []int
			for d := 0; d <= 2*n; d++ {
				if hpa.Replicas(hpa.Metric{Value: hpa.Milli(1000 * d), Target: 1000}, n, hpa.DefaultTolerance) != d {
					got = append(got, d)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("unreachable: got %v, want %v", got, want)
			}
		})
	}
	t.Run("without tolerance every number from every number", func(t *testing.T) {
		for n := 1; n <= 100; n++ {
			for d := range 220 {
				if got := hpa.Replicas(hpa.Metric{Value: hpa.Milli(1000 * d), Target: 1000}, n, exact); got != d {
					t.Fatalf("from %d: got %d, want %d", n, got, d)
				}
			}
		}
	})
	t.Run("a fraction reaches one less from ten but not from twenty", func(t *testing.T) {
		if got := hpa.Replicas(hpa.Metric{Value: 8500, Target: 1000}, 10, hpa.DefaultTolerance); got != 9 {
			t.Errorf("from 10 with 8.5: got %d, want 9", got)
		}
		for v := hpa.Milli(0); v <= 40_000; v++ {
			if hpa.Replicas(hpa.Metric{Value: v, Target: 1000}, 20, hpa.DefaultTolerance) == 19 {
				t.Fatalf("from 20 with %d: 19 was reached", v)
			}
		}
	})
}

func TestHPA_Sync(t *testing.T) {
	steps := func(c hpa.Config, spec int, values ...int) []int {
		h := hpa.New(c, start, spec)
		var got []int
		for i, v := range values {
			var err error
			if v < 0 {
				err = errors.New("unavailable")
			}
			spec, _ = h.Sync(start.Add(time.Duration(i+1)*15*time.Second), spec, spec, one(hpa.Milli(v)*1000), err)
			got = append(got, spec)
		}
		return got
	}
	wide := hpa.Config{Min: 1, Max: 100}
	windowed := wide
	windowed.Down = hpa.Rules{Window: time.Minute, Policies: []hpa.Policy{{Type: hpa.Pods, Value: 1, Period: 15 * time.Second}}}
	slow := wide
	slow.Up = hpa.Rules{Policies: []hpa.Policy{{Type: hpa.Percent, Value: 100, Period: 30 * time.Second}, {Type: hpa.Pods, Value: 4, Period: 30 * time.Second}}}
	least := slow
	least.Up.Select = hpa.Min
	off := wide
	off.Down.Select = hpa.Disabled
	early := wide
	early.Up.Window = 31 * time.Second
	percent := wide
	percent.Down.Policies = []hpa.Policy{{Type: hpa.Percent, Value: 10, Period: 15 * time.Second}}
	bounded := hpa.Config{Min: 3, Max: 6, Down: windowed.Down}
	for _, tt := range []struct {
		name   string
		c      hpa.Config
		spec   int
		values []int
		want   []int
	}{
		{"follows the metric", wide, 2, []int{5, 3}, []int{5, 3}},
		{"a single low sample takes everything without a window", wide, 20, []int{20, 1, 20}, []int{20, 1, 20}},
		{"a single low sample does nothing within the down window", windowed, 20, []int{20, 20, 20, 1, 20}, []int{20, 20, 20, 20, 20}},
		{"the first recommendation is the number at the start", windowed, 20, []int{1, 1, 1}, []int{20, 20, 20}},
		{"a long low is followed by one pod a period", windowed, 5, []int{2, 2, 2, 2, 2, 2, 2}, []int{5, 5, 5, 4, 3, 2, 2}},
		{"an error changes nothing and is not remembered", windowed, 20, []int{-1, -1, -1, -1, 5}, []int{20, 20, 20, 20, 19}},
		{"the larger of two up policies counts", slow, 2, []int{20, 20, 20}, []int{6, 6, 12}},
		{"the smaller where Min is selected", least, 2, []int{20, 20, 20}, []int{4, 4, 8}},
		{"a disabled direction never changes", off, 8, []int{1, 9, 1}, []int{8, 9, 9}},
		{"the up window takes its lowest", early, 2, []int{9, 7, 9}, []int{2, 2, 7}},
		{"percent down is truncated", percent, 15, []int{1, 1}, []int{13, 11}},
		{"below the minimum it jumps to it", bounded, 1, []int{9}, []int{3}},
		{"above the maximum it jumps to it, past the window", bounded, 9, []int{9}, []int{6}},
		{"an error does not hold it above the maximum", bounded, 9, []int{-1}, []int{6}},
		{"the bounds hold the metric", bounded, 4, []int{50, 50}, []int{6, 6}},
		{"zero disables", wide, 0, []int{5}, []int{0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := steps(tt.c, tt.spec, tt.values...); fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	t.Run("says what decided", func(t *testing.T) {
		h := hpa.New(windowed, start, 5)
		if _, why := h.Sync(start.Add(time.Second), 5, 5, one(1000), nil); why != hpa.ReasonStabilized {
			t.Errorf("got %q, want %q", why, hpa.ReasonStabilized)
		}
		if _, why := h.Sync(start.Add(time.Second), 5, 5, nil, nil); why != hpa.ReasonNoMetric {
			t.Errorf("got %q, want %q", why, hpa.ReasonNoMetric)
		}
	})
}
