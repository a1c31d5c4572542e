package scaler

import (
	"fmt"
	"slices"
	"time"
)

const (
	// maxPast is how many earlier decisions a record holds. Each takes about a hundred bytes.
	maxPast = 100
	// handFor is how long a change past the scaler is told as a risk.
	handFor = 10 * time.Minute
)

// Past is a decision that changed the number or the rule. Its keys are short because every record carries a hundred.
type Past struct {
	At      int64  `json:"t"`
	From    int    `json:"f"`
	To      int    `json:"d"`
	Rule    Rule   `json:"r"`
	Load    int    `json:"n"`
	Queued  int    `json:"q"`
	Needed  int    `json:"o"` // Dnow
	Cool    int    `json:"c"` // Dcool
	Floor   int    `json:"F"`
	FloorBy string `json:"by,omitempty"`
}

// past adds the decision to the ones before it if it differs from the last.
func (l *law) past(w Why) []Past {
	var trail []Past
	if l.last != nil {
		trail = l.last.Past
	}
	p := Past{
		At: l.now, From: w.Previous, To: w.Desired, Rule: w.Rule, Load: w.Load, Queued: w.Queued,
		Needed: w.Dnow, Cool: w.Dcool, Floor: w.Floor, FloorBy: w.FloorBy,
	}
	if n := len(trail); n > 0 && trail[n-1].To == p.To && trail[n-1].Rule == p.Rule && w.Previous == w.Desired {
		return trail
	}
	trail = append(slices.Clone(trail), p)
	if len(trail) > maxPast {
		trail = trail[len(trail)-maxPast:]
	}
	return trail
}

// Scaling is what a record keeps of the workload.
type Scaling struct {
	Name        string        `json:"statefulset"`
	Replicas    int           `json:"replicas"` // spec.replicas
	Status      int           `json:"status_replicas"`
	Pods        int           `json:"pods"`
	Terminating int           `json:"terminating"`
	Unready     int           `json:"unready"` // pods that are not ready and do not terminate
	Unscheduled int           `json:"unschedulable"`
	Tolerance   ToleranceMode `json:"tolerance_mode"`
	HPA         *Autoscaler   `json:"hpa,omitempty"`
}

func scalingOf(w *Workload) *Scaling {
	if w == nil {
		return nil
	}
	s := &Scaling{Name: w.Name, Replicas: w.Replicas, Status: w.Status, Pods: len(w.Pods), Tolerance: scaleOf(w).mode(), HPA: w.HPA}
	for i := range w.Pods {
		switch p := &w.Pods[i]; {
		case p.Terminating:
			s.Terminating++
		case p.Unschedulable:
			s.Unscheduled++
		case !p.Ready:
			s.Unready++
		}
	}
	return s
}

// Hand is a change of spec.replicas that no stored number explains.
type Hand struct {
	At   int64  `json:"at_ms"`
	From int    `json:"from"`
	To   int    `json:"to"`
	By   string `json:"by,omitempty"` // what probably did it; "": somebody's hand
}

func (h *Hand) String() string {
	by := "somebody or something else"
	if h.By != "" {
		by = h.By
	}
	s := fmt.Sprintf("spec.replicas went from %d to %d past the scaler, by %s", h.From, h.To, by)
	if h.To < h.From {
		s += "; the pods from there on are ended when their drain hooks let them, or their grace period is over"
	}
	return s
}

// notice compares spec.replicas with the last record's and with the numbers that may have led to it.
func (l *law) notice() {
	if l.last == nil {
		return
	}
	l.next.Hand = l.last.Hand
	if l.w == nil || l.last.Scale == nil || l.moved {
		return
	}
	from, to := l.last.Scale.Replicas, l.w.Replicas
	low, high := l.r, l.r
	for _, s := range l.next.Lows {
		low = min(low, s.N)
	}
	for _, s := range l.next.Highs {
		high = max(high, s.N)
	}
	// The autoscaler never goes below one, and KEDA wakes a pool to that or to its minimum.
	high = max(high, l.w.Minimum, 1)
	var by string
	switch {
	case to >= from && to <= high, to <= from && to >= low:
		return
	case l.w.Paused != nil && to == *l.w.Paused:
		by = "paused-replicas of the ScaledObject"
	case l.w.Idle != nil && to == *l.w.Idle:
		by = "idleReplicaCount of the ScaledObject"
	case to < from && to == l.w.Maximum:
		by = "maxReplicaCount of the ScaledObject"
	case to == l.w.Status && scaleOf(l.w).mode() == ToleranceBand:
		by = "the autoscaler, whose tolerance takes the pods that exist for wanted"
	case to == 0 && l.w.Minimum == 0:
		by = "KEDA's scaling to zero"
	}
	l.next.Hand = &Hand{At: l.now, From: from, To: to, By: by}
}
