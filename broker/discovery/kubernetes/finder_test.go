package kubernetes_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/roomscaler/roomscaler/broker"
)

// bubble runs a test on a cluster that begins with the objects and whose finder watches.
func bubble(t *testing.T, name string, objects []runtime.Object, f func(t *testing.T, c *cluster)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, "media/janus", objects...)
			c.run()
			f(t, c)
		})
	})
}

func (c *cluster) wants(want ...broker.Found) {
	c.t.Helper()
	got, err := c.find()
	if err != nil {
		c.t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		c.t.Errorf("(-want +got):\n%s", d)
	}
}

func (c *cluster) fails(text string) {
	c.t.Helper()
	if got, err := c.find(); err == nil || !strings.Contains(err.Error(), text) {
		c.t.Errorf("got %v, %v; want an error that says %q", got, err, text)
	}
}

func TestFinder_Find(t *testing.T) {
	bubble(t, "the pods of the Service are found by name, ordinal and address", two(), func(_ *testing.T, c *cluster) {
		c.wants(found(0), found(1))
	})
	bubble(t, "an ordinal is the pod's index, else the end of its name", func() []runtime.Object {
		labelled, named := pod(0), pod(1)
		labelled.Labels["apps.kubernetes.io/pod-index"] = "7"
		named.Labels = nil
		return []runtime.Object{labelled, named, slice(labelled, named)}
	}(), func(_ *testing.T, c *cluster) {
		seven := found(0)
		seven.Ordinal = 7
		c.wants(found(1), seven)
	})
	bubble(t, "a terminating pod stays until its object is gone", two(), func(_ *testing.T, c *cluster) {
		c.change("janus-1", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} })
		c.wants(found(0), found(1))
		c.delete("janus-1")
		c.wants(found(0))
	})
	bubble(t, "a pod that the Service has dropped stays as long as it is there", two(), func(_ *testing.T, c *cluster) {
		c.drop("janus-1")
		c.wants(found(0), found(1))
		c.delete("janus-1")
		c.wants(found(0))
	})
	bubble(t, "a pod that has ended is gone", two(), func(_ *testing.T, c *cluster) {
		c.change("janus-0", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })
		c.wants(found(1))
		c.change("janus-1", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
		c.wants()
	})
	bubble(t, "a pod that takes the place of another is found at its own address, once it has one", two(), func(t *testing.T, c *cluster) {
		c.delete("janus-1")
		next := pod(1)
		next.UID, next.Status.PodIP = "another", ""
		if _, err := c.api.CoreV1().Pods("media").Create(t.Context(), next, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		c.wants(found(0)) // the slice still has the address of the one before
		c.change("janus-1", func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.99" })
		moved := found(1)
		moved.Address = "http://10.0.0.99:7088/admin"
		c.wants(found(0), moved)
	})
	bubble(t, "other pods of the namespace are not found", func() []runtime.Object {
		other := pod(1)
		other.OwnerReferences = owner("StatefulSet", "other")
		return []runtime.Object{pod(0), other, slice(pod(0))}
	}(), func(_ *testing.T, c *cluster) {
		c.wants(found(0))
	})
	bubble(t, "a Service without pods is an empty list", []runtime.Object{slice()}, func(_ *testing.T, c *cluster) {
		c.wants()
	})
	bubble(t, "pods that come later are found", []runtime.Object{slice(pod(0))}, func(t *testing.T, c *cluster) {
		c.wants()
		if _, err := c.api.CoreV1().Pods("media").Create(t.Context(), pod(0), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		c.wants(found(0))
	})
}

func TestFinder_Refuses(t *testing.T) {
	bubble(t, "a Service that is not there", []runtime.Object{pod(0)}, func(_ *testing.T, c *cluster) {
		c.fails("no EndpointSlice of a Service janus")
	})
	bubble(t, "pods of a Deployment, whose names end in digits by chance", func() []runtime.Object {
		p := pod(0)
		p.Name, p.Labels, p.OwnerReferences = "janus-7d9f4-x2k42", nil, owner("ReplicaSet", "janus-7d9f4")
		return []runtime.Object{p, slice(p)}
	}(), func(_ *testing.T, c *cluster) {
		c.fails("pod janus-7d9f4-x2k42 is none of a StatefulSet")
	})
	bubble(t, "two pods with one ordinal", func() []runtime.Object {
		other := pod(5)
		other.Labels["apps.kubernetes.io/pod-index"] = "0"
		return []runtime.Object{pod(0), other, slice(pod(0), other)}
	}(), func(_ *testing.T, c *cluster) {
		c.fails("both have the ordinal 0")
	})
}

func TestFinder_Port(t *testing.T) {
	several := func() []runtime.Object {
		s := slice(pod(0))
		s.Ports = append(s.Ports, port("media", 8188))
		return []runtime.Object{pod(0), s}
	}
	for _, c := range []struct{ spec, address, fails string }{
		{"media/janus", "", "several ports"},
		{"media/janus?port=media", "http://10.0.0.10:8188/admin", ""},
		{"media/janus?port=9000&scheme=https&path=/a/", "https://10.0.0.10:9000/a", ""},
		{"media/janus?port=other", "", `no port "other"`},
	} {
		t.Run(c.spec, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newCluster(t, c.spec, several()...)
				k.run()
				if c.fails != "" {
					k.fails(c.fails)
					return
				}
				want := found(0)
				want.Address = c.address
				k.wants(want)
			})
		})
	}
	t.Run("an IPv6 address is bracketed, and a pod's own slice tells its port", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := pod(1)
			p.Status.PodIP = "fd00::1"
			one, two := slice(pod(0)), slice(p)
			two.Name, two.Ports[0] = "janus-x2", port("admin", 7099)
			k := newCluster(t, "media/janus?port=admin", pod(0), p, one, two)
			k.run()
			want := found(1)
			want.Address = "http://[fd00::1]:7099/admin"
			k.wants(found(0), want)
		})
	})
}

func TestG4_Finder(t *testing.T) {
	for _, what := range []string{"pods", "endpointslices"} {
		t.Run("what cannot be listed is unknown and not empty: "+what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, "media/janus", two()...)
				c.refuse(what, forbidden(what))
				c.run()
				began := time.Now()
				c.fails("watching " + what + " in media")
				if d := time.Since(began); d != 0 {
					t.Errorf("it waited %s for what had failed", d)
				}
				c.refuse(what, nil)
				time.Sleep(time.Minute) // it tries again by itself
				c.wants(found(0), found(1))
			})
		})
		bubble(t, "a watch that fails after it has run is unknown until it runs again: "+what, two(), func(t *testing.T, c *cluster) {
			c.wants(found(0), found(1))
			c.refuse(what, errors.New("connection refused"))
			time.Sleep(5 * time.Second)
			c.fails("connection refused")
			c.delete("janus-1") // unseen
			time.Sleep(10 * time.Minute)
			c.fails("connection refused")
			c.refuse(what, nil)
			time.Sleep(time.Minute)
			c.wants(found(0))
		})
	}
	t.Run("before the first lists are there it waits, no longer than it may", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, "media/janus", two()...) // nobody runs it
			began := time.Now()
			c.fails("waiting for the first list")
			if d := time.Since(began); d != 2*time.Second {
				t.Errorf("it waited %s", d)
			}
		})
	})
}

func TestFinder_NodeDown(t *testing.T) {
	down := found(1)
	down.NodeDown = true
	for _, status := range []corev1.ConditionStatus{corev1.ConditionUnknown, corev1.ConditionFalse} {
		bubble(t, "a pod whose node is not ready is told so: Ready "+string(status), two(), func(_ *testing.T, c *cluster) {
			c.ready("node-1", status)
			c.wants(found(0), down)
			c.ready("node-1", corev1.ConditionTrue)
			c.wants(found(0), found(1))
		})
	}
	bubble(t, "a node that has been deleted is down", two(), func(t *testing.T, c *cluster) {
		if err := c.api.CoreV1().Nodes().Delete(t.Context(), "node-1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		c.wants(found(0), down)
	})
	t.Run("without the right to read nodes none is down, and all else works", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, "media/janus", two()...)
			c.refuse("nodes", forbidden("nodes"))
			c.run()
			c.ready("node-1", corev1.ConditionFalse)
			time.Sleep(time.Minute)
			c.wants(found(0), found(1))
		})
	})
	bubble(t, "what was known of nodes does not stand when their watch fails", two(), func(_ *testing.T, c *cluster) {
		c.ready("node-1", corev1.ConditionFalse)
		c.wants(found(0), down)
		c.refuse("nodes", errors.New("connection refused"))
		time.Sleep(5 * time.Second)
		c.wants(found(0), found(1))
	})
}
