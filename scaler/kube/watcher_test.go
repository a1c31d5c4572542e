package kube_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/roomscaler/roomscaler/scaler"
)

func TestView(t *testing.T) {
	t.Run("tells of the StatefulSet, its pods and the autoscaler", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, all()...)
			want := scaler.Workload{
				Name: "janus", Replicas: 3, Status: 3, Minimum: 2, Maximum: 60,
				HPA: &scaler.Autoscaler{Name: "keda-hpa-janus", Minimum: 2, Maximum: 60, Current: 3, Desired: 3, WindowMS: 60_000},
			}
			for i := range 3 {
				want.Pods = append(want.Pods, scaler.Pod{Ordinal: i, UID: fmt.Sprintf("uid-of-janus-%d", i), Ready: true, Started: true})
			}
			if diff := cmp.Diff(want, c.mustView()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	})
	t.Run("follows every change", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, all()...)
			c.mustView()
			c.put(statefulSets, statefulSet(4, nil))
			c.put(pods, pod(3, pending))
			c.put(pods, pod(1, terminating))
			c.put(scaledObjects, scaledObject(func(s map[string]any) { s["maxReplicaCount"] = int64(9) }))
			c.remove(pods, "janus-2")
			w := c.mustView()
			if w.Replicas != 4 || w.Maximum != 9 || len(w.Pods) != 3 || !w.Pods[1].Terminating || w.Pods[2].Ordinal != 3 || !w.Pods[2].Unschedulable || w.Pods[2].Started {
				t.Errorf("got %+v", w)
			}
			c.remove(autoscalers, "keda-hpa-janus")
			if w = c.mustView(); w.HPA != nil || len(w.Settings) != 1 || w.Settings[0].Code != scaler.RiskNoHPA {
				t.Errorf("without an autoscaler: got %+v", w)
			}
		})
	})
	t.Run("ordinals count from spec.ordinals.start", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, scaledObject(nil), statefulSet(2, func(s *appsv1.StatefulSet) { s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 5} }),
				pod(6, nil), pod(5, nil), pod(2, nil), autoscaler(nil))
			w := c.mustView()
			if w.Start != 5 || len(w.Pods) != 3 || w.Pods[0].Ordinal != -3 || w.Pods[1].Ordinal != 0 || w.Pods[2].Ordinal != 1 {
				t.Errorf("got %+v", w)
			}
		})
	})
	t.Run("a pod's age is how long this process has seen it, whatever its own times say", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, scaledObject(nil), statefulSet(1, nil), autoscaler(nil), pod(0, func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(time.Unix(0, 0)) }))
			if got := c.mustView().Pods[0].AgeMS; got != 0 {
				t.Errorf("at first: got %d ms", got)
			}
			time.Sleep(30 * time.Second)
			c.put(pods, pod(0, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }))
			if got := c.mustView().Pods[0].AgeMS; got != 30_000 {
				t.Errorf("after 30 s and a change: got %d ms", got)
			}
			c.put(pods, pod(0, func(p *corev1.Pod) { p.UID = "another" }))
			if got := c.mustView().Pods[0].AgeMS; got != 0 {
				t.Errorf("another pod of the name: got %d ms", got)
			}
		})
	})
	t.Run("pods of others do not count", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, append(all(), pod(7, func(p *corev1.Pod) { p.OwnerReferences[0].UID = "another set" }), pod(8, func(p *corev1.Pod) { p.OwnerReferences = nil }))...)
			if w := c.mustView(); len(w.Pods) != 3 {
				t.Errorf("got %+v", w.Pods)
			}
		})
	})
	t.Run("a container that ran once has started, though it waits now", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
			c := newCluster(t, scaledObject(nil), statefulSet(2, nil), autoscaler(nil),
				pod(0, func(p *corev1.Pod) {
					pending(p)
					p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: waiting}}
				}),
				pod(1, func(p *corev1.Pod) {
					pending(p)
					p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: waiting, RestartCount: 1}}
				}))
			if w := c.mustView(); w.Pods[0].Started || !w.Pods[1].Started {
				t.Errorf("got %+v", w.Pods)
			}
		})
	})
}

// TestG4_UnknownCluster: what is not known is never a view.
func TestG4_UnknownCluster(t *testing.T) {
	t.Run("nothing before the first lists", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, all()...)
			if _, err := c.watcher.View(object); err == nil {
				t.Error("got a view at once")
			}
		})
	})
	for _, resource := range []string{"scaledobjects", "statefulsets", "pods", "horizontalpodautoscalers"} {
		t.Run("nothing while "+resource+" can be listed but not watched", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, all()...)
				c.mustView()
				c.refuse("watch", resource, forbidden(resource))
				for range 60 {
					time.Sleep(time.Second)
					if _, err := c.view(); err == nil {
						t.Fatal("got a view")
					}
				}
			})
		})
		t.Run("nothing before "+resource+" have been listed", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, all()...)
				c.slow = map[string]time.Duration{resource: time.Minute}
				for range 59 {
					if _, err := c.view(); err == nil {
						t.Fatal("got a view")
					}
					time.Sleep(time.Second)
				}
				time.Sleep(2 * time.Second)
				c.mustView()
			})
		})
		t.Run("nothing while "+resource+" cannot be listed or watched, and all again after", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, all()...)
				c.mustView()
				c.refuse("*", resource, forbidden(resource))
				time.Sleep(time.Second)
				if _, err := c.view(); err == nil || !strings.Contains(err.Error(), resource) {
					t.Fatalf("got %v", err)
				}
				time.Sleep(time.Minute)
				c.refuse("*", resource, nil)
				time.Sleep(20 * time.Second)
				c.mustView()
			})
		})
	}
	t.Run("a ScaledObject or StatefulSet that is not there", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, all()...)
			c.mustView()
			c.remove(statefulSets, "janus")
			if _, err := c.view(); err == nil || !strings.Contains(err.Error(), "there is no StatefulSet janus") {
				t.Errorf("got %v", err)
			}
			c.remove(scaledObjects, "janus")
			if _, err := c.view(); !errors.Is(err, scaler.ErrNoScaledObject) {
				t.Errorf("got %v", err)
			}
			c.put(statefulSets, statefulSet(5, nil))
			c.put(scaledObjects, scaledObject(nil))
			if w := c.mustView(); w.Replicas != 5 {
				t.Errorf("got %+v", w)
			}
		})
	})
	t.Run("another StatefulSet in the ScaledObject is another view", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, append(all(), statefulSet(1, func(s *appsv1.StatefulSet) { s.Name, s.UID = "other", "uid-of-other" }))...)
			c.mustView()
			c.put(scaledObjects, scaledObject(func(s map[string]any) { s["scaleTargetRef"].(map[string]any)["name"] = "other" }))
			if w := c.mustView(); w.Name != "other" || len(w.Pods) != 0 {
				t.Errorf("got %+v", w)
			}
		})
	})
}

func TestView_Refused(t *testing.T) {
	for name, c := range map[string]struct {
		target map[string]any
		want   string
	}{
		"a Deployment by default": {map[string]any{"name": "janus"}, "Deployment janus"},
		"a Deployment":            {map[string]any{"name": "janus", "kind": "Deployment", "apiVersion": "apps/v1"}, "run the media servers as a StatefulSet"},
		"something else":          {map[string]any{"name": "janus", "kind": "Rollout", "apiVersion": "argoproj.io/v1alpha1"}, "Rollout janus of argoproj.io/v1alpha1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cl := newCluster(t, scaledObject(func(s map[string]any) { s["scaleTargetRef"] = c.target }), statefulSet(1, nil))
				_, err := cl.view()
				var refused *scaler.RefusedError
				if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) || refused.Ref != object {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func TestView_Tolerance(t *testing.T) {
	small := resource.MustParse("50m")
	for name, c := range map[string]struct {
		edit             func(*autoscalingv2.HorizontalPodAutoscaler)
		up, down, window float64
	}{
		"as it is said":                   {nil, 0, 0, 60_000},
		"no behaviour is 0.1 both ways":   {func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Spec.Behavior = nil }, 0.1, 0.1, -1},
		"a side that says nothing is 0.1": {func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Spec.Behavior.ScaleUp.Tolerance = nil }, 0.1, 0, 60_000},
		"a fraction":                      {func(h *autoscalingv2.HorizontalPodAutoscaler) { h.Spec.Behavior.ScaleDown.Tolerance = &small }, 0, 0.05, 60_000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cl := newCluster(t, scaledObject(nil), statefulSet(3, nil), autoscaler(c.edit))
				h := cl.mustView().HPA
				if h.ScaleUp != c.up || h.ScaleIn != c.down || float64(h.WindowMS) != c.window {
					t.Errorf("got %+v", h)
				}
			})
		})
	}
}

// TestView_Settings: each way to change replicas past the scaler is told.
func TestView_Settings(t *testing.T) {
	annotate := func(key, value string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{key: value}) }
	}
	spec := func(edit func(map[string]any)) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { edit(u.Object["spec"].(map[string]any)) }
	}
	trigger := func(s map[string]any) map[string]any { return s["triggers"].([]any)[0].(map[string]any) }
	for code, edit := range map[string]func(*unstructured.Unstructured){
		"":                  func(*unstructured.Unstructured) {},
		scaler.RiskPaused:   annotate("autoscaling.keda.sh/paused", "yes"),
		scaler.RiskPausedAt: annotate("autoscaling.keda.sh/paused-replicas", "4"),
		scaler.RiskRestore:  spec(func(s map[string]any) { s["advanced"] = map[string]any{"restoreToOriginalReplicaCount": true} }),
		scaler.RiskModifiers: spec(func(s map[string]any) {
			s["advanced"] = map[string]any{"scalingModifiers": map[string]any{"formula": "a+1"}}
		}),
		scaler.RiskFallback: spec(func(s map[string]any) {
			s["fallback"] = map[string]any{"failureThreshold": int64(3), "replicas": int64(2)}
		}),
		scaler.RiskIdle:          spec(func(s map[string]any) { s["idleReplicaCount"] = int64(1) }),
		scaler.RiskZero:          spec(func(s map[string]any) { delete(s, "minReplicaCount") }),
		scaler.RiskTriggers:      spec(func(s map[string]any) { s["triggers"] = append(s["triggers"].([]any), map[string]any{"type": "cpu"}) }),
		scaler.RiskCached:        spec(func(s map[string]any) { trigger(s)["useCachedMetrics"] = true }),
		scaler.RiskMetricType:    spec(func(s map[string]any) { trigger(s)["metricType"] = "Value" }),
		"paused by false is not": annotate("autoscaling.keda.sh/paused", "false"),
	} {
		t.Run(code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := scaledObject(nil)
				edit(o)
				w := newCluster(t, o, statefulSet(3, nil), autoscaler(nil)).mustView()
				if code == "" || strings.Contains(code, " ") {
					if len(w.Settings) > 0 {
						t.Errorf("got %v, want none", w.Settings)
					}
					return
				}
				if len(w.Settings) != 1 || w.Settings[0].Code != code || !strings.Contains(w.Settings[0].Detail, "ScaledObject janus") {
					t.Errorf("got %v", w.Settings)
				}
			})
		})
	}
	t.Run("of the StatefulSet", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newCluster(t, scaledObject(nil), autoscaler(nil), statefulSet(3, func(s *appsv1.StatefulSet) {
				s.Spec.PodManagementPolicy, s.Spec.UpdateStrategy = "", appsv1.StatefulSetUpdateStrategy{}
			})).mustView()
			if len(w.Settings) != 2 || w.Settings[0].Code != scaler.RiskOrderedReady || w.Settings[1].Code != scaler.RiskRolling {
				t.Errorf("got %v", w.Settings)
			}
		})
	})
}

func TestLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, all()...)
		if n, err := c.watcher.Live(t.Context(), object); n != 3 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
		c.refuse("watch", "statefulsets", forbidden("statefulsets"))
		c.put(statefulSets, statefulSet(7, nil))
		if n, err := c.watcher.Live(t.Context(), object); n != 7 || err != nil {
			t.Errorf("while the watch fails: got %d, %v; it must ask the API server itself", n, err)
		}
		c.refuse("get", "statefulsets", errors.New("away"))
		if _, err := c.watcher.Live(t.Context(), object); err == nil || errors.Is(err, scaler.ErrNoScaledObject) {
			t.Errorf("while the API is away: got %v", err)
		}
		c.remove(scaledObjects, "janus")
		if _, err := c.watcher.Live(t.Context(), object); !errors.Is(err, scaler.ErrNoScaledObject) {
			t.Errorf("without the ScaledObject: got %v", err)
		}
		c.refuse("get", "scaledobjects", forbidden("scaledobjects"))
		if _, err := c.watcher.Live(t.Context(), object); err == nil || errors.Is(err, scaler.ErrNoScaledObject) {
			t.Errorf("forbidden: got %v, which is not gone", err)
		}
	})
}

func TestEvent(t *testing.T) {
	list := func(c *cluster) []unstructured.Unstructured {
		got, err := c.api.Resource(events).Namespace("media").List(c.t.Context(), metav1.ListOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		return got.Items
	}
	t.Run("stands at the ScaledObject", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, all()...)
			c.mustView()
			c.watcher.Event(object, scaler.Event{Warning: true, Reason: "GraceExpired", Note: strings.Repeat("é", 2000)})
			synctest.Wait()
			got := list(c)
			if len(got) != 1 {
				t.Fatalf("got %d events", len(got))
			}
			uid, _, _ := unstructured.NestedString(got[0].Object, "involvedObject", "uid")
			kind, _, _ := unstructured.NestedString(got[0].Object, "type")
			note, _, _ := unstructured.NestedString(got[0].Object, "message")
			if uid != "uid-of-object" || kind != "Warning" || len(note) > 1024 {
				t.Errorf("got uid %q, type %q, %d bytes", uid, kind, len(note))
			}
		})
	})
	t.Run("is bounded for each ScaledObject, and the bound recovers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, all()...)
			c.mustView()
			for range 100 {
				c.watcher.Event(object, scaler.Event{Reason: "InstancesDecided", Note: "n"})
				time.Sleep(time.Millisecond)
			}
			synctest.Wait()
			if n := len(list(c)); n != 25 {
				t.Errorf("got %d, want 25", n)
			}
			time.Sleep(30 * time.Second)
			for range 9 {
				c.watcher.Event(object, scaler.Event{Reason: "InstancesDecided", Note: "n"})
				time.Sleep(time.Millisecond)
			}
			synctest.Wait()
			if n := len(list(c)); n < 27 || n > 28 {
				t.Errorf("after 30 s: got %d, want 28", n)
			}
		})
	})
	t.Run("that may not be written hinders nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, all()...)
			c.refuse("create", "events", forbidden("events"))
			for range 500 {
				c.watcher.Event(object, scaler.Event{Reason: "InstancesDecided"})
			}
			synctest.Wait()
			c.mustView()
		})
	})
}

// TestView_OnlyWhatIsNeeded: nothing is watched before the first call, by name what has one, and nothing any more when nobody
// asks.
func TestView_OnlyWhatIsNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, all()...)
		synctest.Wait()
		if n := c.count("list scaledobjects"); n != 0 {
			t.Errorf("%d lists before any call", n)
		}
		c.mustView()
		for _, r := range []schema.GroupVersionResource{scaledObjects, statefulSets, autoscalers} {
			for _, a := range c.api.Actions() {
				if a.Matches("list", r.Resource) {
					if o, ok := a.(interface{ GetListOptions() metav1.ListOptions }); ok && !strings.HasPrefix(o.GetListOptions().FieldSelector, "metadata.name=") {
						t.Errorf("%s are listed by %q", r.Resource, o.GetListOptions().FieldSelector)
					}
				}
			}
		}
		time.Sleep(12 * time.Minute)
		synctest.Wait()
		before := c.count("watch pods") + c.count("list pods")
		time.Sleep(2 * time.Hour)
		if n := c.count("watch pods") + c.count("list pods"); n != before {
			t.Errorf("%d calls for pods although nobody asks", n-before)
		}
		c.mustView()
	})
}
