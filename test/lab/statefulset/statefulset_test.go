package statefulset_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/test/lab/statefulset"
)

func TestSync(t *testing.T) {
	up := func(n ...int) (pods []statefulset.Pod) {
		for _, i := range n {
			pods = append(pods, statefulset.Pod{Ordinal: i})
		}
		return pods
	}
	ending := func(n int) statefulset.Pod { return statefulset.Pod{Ordinal: n, Terminating: true} }
	type actions = statefulset.Actions
	for _, tt := range []struct {
		name     string
		replicas int
		pods     []statefulset.Pod
		want     actions
	}{
		{"all missing ordinals are created at once", 3, nil, actions{Create: []int{0, 1, 2}}},
		{"a gap is filled", 3, up(0, 2), actions{Create: []int{1}}},
		{"all condemned pods are deleted at once, highest first", 1, up(0, 1, 2, 3), actions{Delete: []int{3, 2, 1}}},
		{"a pod that is going is not deleted again", 1, append(up(0), ending(1)), actions{}},
		{"an ordinal in range waits until its terminating pod is gone", 2, append(up(0), ending(1)), actions{}},
		{"higher ordinals do not wait for it", 4, append(up(0), ending(1)), actions{Create: []int{2, 3}}},
		{"a finished pod in range is deleted", 1, []statefulset.Pod{{Ordinal: 0, Finished: true}}, actions{Delete: []int{0}}},
		{"nothing is left at zero", 0, up(0, 1), actions{Delete: []int{1, 0}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, statefulset.Sync(tt.replicas, tt.pods)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
	t.Run("the status counts terminating pods", func(t *testing.T) {
		if got := statefulset.StatusReplicas(append(up(0), ending(1))); got != 2 {
			t.Errorf("got %d, want 2", got)
		}
	})
}
