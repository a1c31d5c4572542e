// Package statefulset is the rule by which Kubernetes' StatefulSet controller creates and deletes pods
// (podManagementPolicy Parallel, updateStrategy OnDelete, ordinals from 0), as a pure function.
package statefulset

import (
	"cmp"
	"slices"
)

// Pod is what the controller sees of one of its pods.
type Pod struct {
	Ordinal     int
	Terminating bool // deleted but not gone; it cannot be undone
	Finished    bool // Failed or Succeeded
}

// Actions are what one sync of the controller does.
type Actions struct {
	Create []int // ordinals, ascending
	Delete []int // ordinals, descending: the highest goes first, but all in one sync
}

// Sync returns what the controller does when spec.replicas is replicas and these pods are there. It never looks
// at what runs on a pod. An ordinal whose pod is terminating is created anew only when that is gone.
func Sync(replicas int, pods []Pod) Actions {
	var a Actions
	there := make(map[int]bool, len(pods))
	for _, p := range pods {
		there[p.Ordinal] = true
		if !p.Terminating && (p.Finished || p.Ordinal >= replicas) {
			a.Delete = append(a.Delete, p.Ordinal)
		}
	}
	for i := range replicas {
		if !there[i] {
			a.Create = append(a.Create, i)
		}
	}
	slices.SortFunc(a.Delete, func(x, y int) int { return cmp.Compare(y, x) })
	return a
}

// StatusReplicas is the set's status.replicas: every pod that is there, terminating ones included.
func StatusReplicas(pods []Pod) int { return len(pods) }
