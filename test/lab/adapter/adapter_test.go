package adapter_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/roomscaler/roomscaler/test/lab/cluster"
)

// need skips the test unless it is asked for with ROOMSCALER_CLUSTER=try, and then where the programs of a control plane have
// not been built; with ROOMSCALER_CLUSTER=required that is a failure. ROOMSCALER_CLUSTER_CACHE is where they are.
func need(t *testing.T) cluster.Cache {
	t.Helper()
	asked := os.Getenv("ROOMSCALER_CLUSTER")
	if asked == "" {
		t.Skip("make test-adapter runs it")
	}
	cache, err := cluster.OpenCache(os.Getenv("ROOMSCALER_CLUSTER_CACHE"))
	if err != nil {
		t.Fatal(err)
	}
	missing, err := cache.Missing(cluster.ControlPlaneComponents()...)
	switch {
	case err != nil:
		t.Fatal(err)
	case len(missing) == 0:
	case asked == "required":
		t.Fatalf("%s not built", strings.Join(missing, ", "))
	default:
		t.Skipf("SKIPPED: %s not built; make test-adapter BUILD=1 builds it first, which takes minutes", strings.Join(missing, ", "))
	}
	return cache
}

// TestAdapter is one story, because starting a control plane takes a while. Its subtests build on each other.
func TestAdapter(t *testing.T) {
	w := newWorld(t, need(t))
	story := func(name string, f func(t *testing.T)) {
		t.Helper()
		if !t.Run(name, f) {
			w.explain()
			t.FailNow()
		}
	}
	story("the aggregated API answers with the stored number", func(t *testing.T) {
		w.eventually(t, "an answer", func() error { return w.wants("1") })
		plan := w.facts(t).Plan
		if plan == nil || plan.Desired != 1 {
			t.Errorf("the answer is 1, and the stored plan %+v", plan)
		}
	})
	story("sessions and rooms are served beside it", func(t *testing.T) {
		for _, metric := range []string{"roomscaler_sessions", "roomscaler_rooms"} {
			w.eventually(t, metric, func() error {
				if got, err := w.metric(namespace, metric); err != nil || got != "0" {
					return fmt.Errorf("got %q, %w", got, err)
				}
				return nil
			})
		}
	})
	story("in another namespace the metric does not exist", func(t *testing.T) {
		if got, err := w.metric("default", "roomscaler_desired_instances"); !apierrors.IsNotFound(err) {
			t.Errorf("got %q, %v", got, err)
		}
	})
	story("a plain autoscaler scales out by it", func(t *testing.T) {
		for i := range 7 { // three rooms per instance are wanted
			w.create(t, fmt.Sprintf("early-%d", i))
		}
		w.eventually(t, "three pods", func() error { return w.pods(3) })
	})
	story("an instance with a room is waited for", func(t *testing.T) {
		w.eventually(t, "a room on janus-2", func() error { return w.createOn(t, "janus-2") })
		for _, pin := range w.rooms(t) {
			if pin.Instance != "janus-2" {
				w.remove(t, pin.Room)
			}
		}
		w.eventually(t, "janus-2 cordoned", func() error {
			if in := w.instance(t, "janus-2"); in.State != "cordoned" {
				return fmt.Errorf("it is %s", in.State)
			}
			return nil
		})
		if err := errors.Join(w.wants("3"), w.pods(3)); err != nil {
			t.Error(err)
		}
	})
	story("it scales in when the room is over", func(t *testing.T) {
		for _, pin := range w.rooms(t) {
			w.remove(t, pin.Room)
		}
		w.eventually(t, "one pod", func() error { return w.pods(1) })
		if cut := w.media.cut(); len(cut) > 0 {
			t.Errorf("pods were removed with rooms on them: %v", cut)
		}
	})
	story("without a broker the metric is an error and the replicas stay", func(t *testing.T) {
		for i := range 4 {
			w.create(t, fmt.Sprintf("late-%d", i))
		}
		w.eventually(t, "two pods", func() error { return w.pods(2) })
		w.broker.Kill()
		w.eventually(t, "an error", func() error {
			got, err := w.metric(namespace, "roomscaler_desired_instances")
			if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "the number of replicas stays as it is") {
				return fmt.Errorf("got %q, %w", got, err)
			}
			return nil
		})
		w.eventually(t, "the autoscaler to say so", func() error {
			hpa := w.autoscaler(t)
			i := slices.IndexFunc(hpa.Status.Conditions, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
				return c.Type == autoscalingv2.ScalingActive && c.Status == corev1.ConditionFalse && c.Reason == "FailedGetExternalMetric"
			})
			if i < 0 {
				return fmt.Errorf("its conditions are %+v", hpa.Status.Conditions)
			}
			return nil
		})
		if err := w.pods(2); err != nil {
			t.Error(err)
		}
	})
}
