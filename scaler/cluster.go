package scaler

import (
	"context"
	"errors"
	"fmt"
)

// Cluster is what the scaler needs of Kubernetes. It is read; the only thing that is written are Events.
type Cluster interface {
	// View returns what is known of the ScaledObject's StatefulSet. It answers from memory, and the first call
	// for a ScaledObject begins to gather. *RefusedError: the scaler cannot scale that. Any other error,
	// also while a watch fails, means that nothing is known.
	View(ref Ref) (Workload, error)

	// Live asks the API server itself for spec.replicas. ErrNoScaledObject if the
	// ScaledObject is not there; after any other error nothing is known.
	Live(ctx context.Context, ref Ref) (replicas int, err error)

	// Event tells an operator something, at the ScaledObject. It does not wait, and may be lost.
	Event(ref Ref, e Event)
}

// Event is a Kubernetes Event.
type Event struct {
	Warning      bool
	Reason, Note string
}

// ErrNoScaledObject says that a ScaledObject is known not to be there.
var ErrNoScaledObject = errors.New("there is no such ScaledObject")

// RefusedError says why a ScaledObject cannot be scaled without losing rooms.
type RefusedError struct {
	Ref Ref
	Why string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("ScaledObject %s cannot be scaled: %s", e.Ref, e.Why)
}

// Workload is a StatefulSet with what scales it, at one moment. Ordinals count from spec.ordinals.start.
type Workload struct {
	Name     string // of the StatefulSet
	Replicas int    // spec.replicas
	Status   int    // status.replicas: what the autoscaler holds a value against; pods that terminate are among them
	Start    int    // spec.ordinals.start
	Minimum  int    // of the ScaledObject
	Maximum  int
	Pods     []Pod       // of the StatefulSet, in order of their ordinals
	HPA      *Autoscaler // nil: there is none
	// Settings are risks that lie in how the ScaledObject and the StatefulSet are configured.
	Settings []Risk
	Paused   *int // paused-replicas of the ScaledObject
	Idle     *int // its idleReplicaCount
}

// Pod is one pod of a StatefulSet.
type Pod struct {
	Ordinal       int
	UID           string
	Terminating   bool // it has been deleted; its containers may go on for their grace period
	Ready         bool
	Unschedulable bool
	Started       bool  // one of its containers has run
	AgeMS         int64 // since this process first saw it
}

// Autoscaler is the live HorizontalPodAutoscaler of a ScaledObject.
type Autoscaler struct {
	Name     string  `json:"name"`
	Minimum  int     `json:"minimum"`
	Maximum  int     `json:"maximum"`
	Current  int     `json:"current"` // as it last saw it
	Desired  int     `json:"desired"` // as it last decided
	ScaleUp  float64 `json:"tolerance_up"`
	ScaleIn  float64 `json:"tolerance_down"`
	WindowMS int64   `json:"downscale_window_ms"`  // its own; -1: not said, so the cluster's default
	Trouble  string  `json:"conditions,omitempty"` // conditions that are not as they should be
}

// pod returns the pod of an ordinal; nil if there is none. Pods are in order.
func (w *Workload) pod(ordinal int) *Pod {
	low, high := 0, len(w.Pods)
	for low < high {
		mid := (low + high) / 2
		if w.Pods[mid].Ordinal < ordinal {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low < len(w.Pods) && w.Pods[low].Ordinal == ordinal {
		return &w.Pods[low]
	}
	return nil
}

// condemned reports whether a pod is being taken away for good: nothing brings it back, whatever is answered.
func (w *Workload) condemned(ordinal int) bool {
	if w == nil || ordinal < w.Replicas {
		return false
	}
	p := w.pod(ordinal)
	return p != nil && p.Terminating
}
