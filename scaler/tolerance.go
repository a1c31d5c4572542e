package scaler

import (
	"fmt"
	"math"
)

// ToleranceMode says how the autoscaler's tolerance is reckoned with.
type ToleranceMode string

// The modes.
const (
	ToleranceExact  ToleranceMode = "exact"  // the live autoscaler has tolerance 0 both ways: every number is reached
	ToleranceBand   ToleranceMode = "band"   // it has not: numbers near the present one cannot be reached
	ToleranceUnread ToleranceMode = "unread" // Kubernetes is not read: numbers are answered as they are
)

// defaultTolerance is the autoscaler's where its own settings say nothing.
const defaultTolerance = 0.1

// scale is what decides about the outcome of an answer.
type scale struct {
	replicas int // spec.replicas
	status   int // status.replicas
	maximum  int // the autoscaler's
	up, down float64
}

// scaleOf returns how answers come out; nil where Kubernetes is not read. Without an
// autoscaler the defaults of the one that is about to be made are assumed.
func scaleOf(w *Workload) *scale {
	if w == nil {
		return nil
	}
	s := &scale{replicas: w.Replicas, status: w.Status, maximum: w.Maximum, up: defaultTolerance, down: defaultTolerance}
	if w.HPA != nil {
		s.up, s.down, s.maximum = w.HPA.ScaleUp, w.HPA.ScaleIn, w.HPA.Maximum
	}
	return s
}

// scale is that of the record.
func (s *Scaling) scale(maximum int) *scale {
	if s == nil {
		return nil
	}
	return scaleOf(&Workload{Replicas: s.Replicas, Status: s.Status, Maximum: maximum, HPA: s.HPA})
}

func (s *scale) mode() ToleranceMode {
	switch {
	case s == nil:
		return ToleranceUnread
	case s.up == 0 && s.down == 0:
		return ToleranceExact
	}
	return ToleranceBand
}

// within reports whether the autoscaler would take the value for being near enough to so many pods, and then
// want exactly those: it holds values against the pods that exist, not against spec.replicas.
func (s *scale) within(value float64, pods int) bool {
	if pods <= 0 {
		return false
	}
	const slack = 1e-9 // its own sums are not exact either
	ratio := value / float64(pods)
	return 1-s.down-slack <= ratio && ratio <= 1+s.up+slack
}

// sure reports whether a value leads to n whatever number of pods the autoscaler sees.
func (s *scale) sure(value float64, n int) bool {
	return !s.within(value, n-1) && !s.within(value, n+1)
}

// lowest is the least value that asks for n: the autoscaler rounds up, and KEDA passes thousandths on.
func lowest(n int) float64 { return max(0, float64(n)-0.999) }

// reaches returns the value that makes the autoscaler set n, if there is one now.
func (s *scale) reaches(n int) (value float64, ok bool) {
	exact := float64(n)
	switch {
	case s.mode() != ToleranceBand, s.sure(exact, n):
		return exact, true
	case n > s.replicas:
		if !s.within(exact, max(s.status, s.replicas)) && exact > float64(max(s.status, s.replicas)) {
			return exact, true
		}
		// Beyond its maximum the autoscaler cuts off, after the tolerance.
		if beyond := s.above(); n >= s.maximum && n < beyond {
			return float64(beyond), true
		}
	case n < s.replicas:
		pods := min(s.status, s.replicas)
		if v := lowest(n); !s.within(v, pods) && v < float64(pods) {
			return v, true
		}
	}
	return 0, false
}

// above is the first number that can be reached upwards.
func (s *scale) above() int {
	pods := max(s.status, s.replicas)
	n := max(pods+1, int(math.Floor(float64(pods)*(1+s.up)))+1)
	for s.within(float64(n), pods) {
		n++
	}
	return n
}

// value returns what to answer for a stored number, or *holdError: an error is the only answer that leaves
// spec.replicas as it is when the number lies within the tolerance.
func (s *scale) value(n int) (float64, error) {
	if v, ok := s.reaches(n); ok {
		return v, nil
	}
	return 0, &holdError{desired: n, scale: *s}
}

// holdError: the stored number cannot be reached, so no number is answered.
type holdError struct {
	desired int
	scale   scale
}

func (e *holdError) Error() string {
	if e.desired == e.scale.replicas {
		return fmt.Sprintf("hold at %d replicas: within the autoscaler's tolerance every number could change that; set its tolerance to 0 both ways (Kubernetes 1.35 or later)", e.desired)
	}
	return fmt.Sprintf("hold at %d replicas: %d are wanted, which the autoscaler's tolerance of %g up and %g down keeps from being reached while %d pods exist; set its tolerance to 0 both ways (Kubernetes 1.35 or later)",
		e.scale.replicas, e.desired, e.scale.up, e.scale.down, e.scale.status)
}

// Answer returns the value that makes the autoscaler set n replicas. Where there is none, because of its tolerance,
// it is an error, which leaves the number of replicas as it is.
func (w *Workload) Answer(n int) (float64, error) { return scaleOf(w).value(n) }
