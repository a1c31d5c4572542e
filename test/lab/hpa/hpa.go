// Package hpa is the arithmetic of Kubernetes' HorizontalPodAutoscaler (1.34 to 1.37) for external metrics with a
// target of AverageValue, as a value that can be driven by any clock.
package hpa

import (
	"math"
	"time"
)

// Milli is a metric value or target in thousandths, the unit in which the HPA reckons.
type Milli int64

// Metric is one external metric of a sync: the sum of its values and its target per replica.
type Metric struct {
	Name   string
	Value  Milli
	Target Milli // > 0
}

// Tolerance is by how much the ratio of usage to target may differ from 1 without a change. 0 is exact;
// the default of a cluster is 0.1 both ways.
type Tolerance struct{ Up, Down float64 }

// DefaultTolerance is that of a cluster whose HPA sets none.
var DefaultTolerance = Tolerance{Up: 0.1, Down: 0.1}

// Replicas returns the number of replicas that a metric asks for. Within the tolerance that is status, the
// scale target's status.replicas (not its spec); else the value divided by the target, rounded up.
func Replicas(m Metric, status int, tol Tolerance) int {
	ratio := float64(m.Value) / (float64(m.Target) * float64(status))
	if 1-tol.Down <= ratio && ratio <= 1+tol.Up {
		return status
	}
	return int(math.Ceil(float64(m.Value) / float64(m.Target)))
}

// PolicyType is the unit of a policy's value.
type PolicyType string

// The types of policies.
const (
	Pods    PolicyType = "Pods"
	Percent PolicyType = "Percent"
)

// Policy limits by how much the number may change within a period.
type Policy struct {
	Type   PolicyType
	Value  int
	Period time.Duration
}

// Select says which of several policies counts.
type Select string

// The choices among policies. The empty Select is Max.
const (
	Max      Select = "Max" // the one that allows the greatest change
	Min      Select = "Min"
	Disabled Select = "Disabled" // no change in this direction
)

// Rules govern one direction.
type Rules struct {
	Window   time.Duration // stabilization window; 0 = none
	Policies []Policy      // none = no limit
	Select   Select
}

// Config is an HPA object.
type Config struct {
	Min, Max  int
	Tolerance Tolerance
	Up, Down  Rules
}

// Reason says what decided a sync.
type Reason string

// The reasons of a sync's result, in the order in which they are tried.
const (
	ReasonDisabled   Reason = "spec.replicas is 0"
	ReasonAboveMax   Reason = "spec.replicas is above the maximum"
	ReasonBelowMin   Reason = "spec.replicas is below the minimum"
	ReasonNoMetric   Reason = "the metric could not be read"
	ReasonSteady     Reason = "the metric asks for the present number"
	ReasonMetric     Reason = "the metric"
	ReasonStabilized Reason = "the stabilization window"
	ReasonPolicy     Reason = "the policies"
	ReasonBounds     Reason = "the bounds"
)

type entry struct {
	at time.Time
	n  int
}

// HPA is the memory of one autoscaler: its recommendations and its changes. It is for one
// goroutine at a time.
type HPA struct {
	Config Config

	recommended []entry
	ups, downs  []entry
}

// New returns an HPA that has just been started, with the present number as its first recommendation.
func New(c Config, now time.Time, spec int) *HPA {
	return &HPA{Config: c, recommended: []entry{{now, spec}}}
}

// Sync does one round: from spec.replicas, status.replicas and the metrics that were read (or the error in
// reading any of them) to the number to be written into spec.replicas.
func (h *HPA) Sync(now time.Time, spec, status int, metrics []Metric, err error) (int, Reason) {
	n, why := h.sync(now, spec, status, metrics, err)
	switch {
	case n > spec:
		h.ups = append(h.ups, entry{now, n - spec})
	case n < spec:
		h.downs = append(h.downs, entry{now, spec - n})
	}
	return n, why
}

func (h *HPA) sync(now time.Time, spec, status int, metrics []Metric, err error) (int, Reason) {
	c := h.Config
	switch {
	case spec == 0:
		return 0, ReasonDisabled
	case spec > c.Max: // the metric is not read, and neither window nor policy holds
		return c.Max, ReasonAboveMax
	case spec < c.Min:
		return c.Min, ReasonBelowMin
	case err != nil || len(metrics) == 0:
		return spec, ReasonNoMetric
	}
	want := 0
	for _, m := range metrics {
		want = max(want, Replicas(m, status, c.Tolerance))
	}
	why := ReasonMetric
	if want == spec {
		why = ReasonSteady
	}
	n := h.stabilize(now, spec, want)
	if n != want {
		why = ReasonStabilized
	}
	if limited := h.limit(now, spec, n); limited != n {
		n, why = limited, ReasonPolicy
	}
	if bounded := min(max(n, c.Min), c.Max); bounded != n {
		n, why = bounded, ReasonBounds
	}
	return n, why
}

// stabilize takes the lowest recommendation of the up window and the highest of the down window as bounds of
// the change, and records want.
func (h *HPA) stabilize(now time.Time, spec, want int) int {
	up, down := want, want
	keep := h.recommended[:0]
	for _, r := range h.recommended {
		age := now.Sub(r.at)
		if age < h.Config.Up.Window {
			up = min(up, r.n)
		}
		if age < h.Config.Down.Window {
			down = max(down, r.n)
		}
		if age < max(h.Config.Up.Window, h.Config.Down.Window) {
			keep = append(keep, r)
		}
	}
	h.recommended = append(keep, entry{now, want})
	return min(max(spec, up), down)
}

func (h *HPA) limit(now time.Time, spec, n int) int {
	if n > spec {
		return min(n, h.bound(now, spec, h.Config.Up, true))
	}
	if n < spec {
		return max(n, h.bound(now, spec, h.Config.Down, false))
	}
	return n
}

// bound is the farthest number that the rules of a direction allow.
func (h *HPA) bound(now time.Time, spec int, r Rules, up bool) int {
	if r.Select == Disabled {
		return spec
	}
	if len(r.Policies) == 0 {
		if up {
			return math.MaxInt
		}
		return 0
	}
	farthest := 0
	for i, p := range r.Policies {
		start := spec - within(h.ups, now, p.Period) + within(h.downs, now, p.Period)
		b := p.bound(start, up)
		farther := (b > farthest) == up
		if i == 0 || farther == (r.Select != Min) {
			farthest = b
		}
	}
	if up {
		return max(farthest, spec)
	}
	return min(farthest, spec)
}

func (p Policy) bound(start int, up bool) int {
	sign := 1
	if !up {
		sign = -1
	}
	if p.Type == Pods {
		return start + sign*p.Value
	}
	exact := float64(start) * (1 + float64(sign*p.Value)/100)
	if up {
		return int(math.Ceil(exact))
	}
	return int(exact)
}

func within(list []entry, now time.Time, period time.Duration) int {
	sum := 0
	for _, e := range list {
		if now.Sub(e.at) < period {
			sum += e.n
		}
	}
	return sum
}
