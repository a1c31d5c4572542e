package kube

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/scaler"
)

const (
	mostPresent = 100
	mostWanted  = 120
)

// many is a hundred and twenty pools beside each other, each with its ScaledObject, StatefulSet and HPA: w1 wants 1
// instance, w2 wants 2 and so on. All have the same number of pods to begin with. It is the scaler's broker and cluster,
// with facts in which everything that the wanted number takes away is empty.
type many struct {
	present int
	dying   int // pods beyond spec.replicas that are still about
	tol     tolerance

	mu    sync.Mutex
	pools map[string]*pool
}

type pool struct {
	wanted  int
	spec    int
	written []int
	asked   int64
	plan    *brokerapi.Plan
	sealed  map[string]bool
}

func newMany(present, dying int, tol tolerance) *many {
	m := &many{present: present, dying: dying, tol: tol, pools: map[string]*pool{}}
	for w := 1; w <= mostWanted; w++ {
		m.pools[fmt.Sprintf("w%d", w)] = &pool{wanted: w, spec: present, sealed: map[string]bool{}}
	}
	return m
}

func (m *many) with(name string, fn func(*pool) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.pools[name]
	if !ok {
		return fmt.Errorf("there is no pool %q", name)
	}
	return fn(p)
}

// Facts of a pool whose load has always been what the wanted number is for. Its clock goes on by 6 s with each look.
func (m *many) Facts(_ context.Context, name string) (f brokerapi.PoolFacts, err error) {
	err = m.with(name, func(p *pool) error {
		p.asked++
		f = brokerapi.PoolFacts{Pool: name, Term: "t", Phase: brokerapi.PhaseReady, NowMS: 1_000_000 + 6000*p.asked, EmptyWhen: "sessions"}
		f.Queue.Participants = p.wanted
		for i := range m.status(p) {
			busy := f.Queue.Participants > 0 && !m.terminates(p, i)
			if busy {
				f.Queue.Participants--
			}
			f.Instances = append(f.Instances, m.instance(p, i, busy))
		}
		if p.plan != nil {
			plan := *p.plan
			plan.AgeMS = 6000
			f.Plan = &plan
		}
		return nil
	})
	return f, err
}

func (m *many) instance(p *pool, i int, busy bool) brokerapi.Instance {
	age, long, sessions, rooms := int64(1000), int64(600_000), 1, 1
	in := brokerapi.Instance{
		Name: "janus-" + strconv.Itoa(i), Ordinal: i, Incarnation: "x", State: "ready", AgeMS: &age, KnownMS: 1_000_000,
		Sessions: &sessions, Participants: &sessions, Rooms: &rooms, RoomsLeft: 1,
	}
	if !busy {
		sessions, rooms, in.RoomsLeft, in.EmptyMS, in.State = 0, 0, 0, &long, "cordoned"
		in.Marks = []brokerapi.Mark{{Owner: "scaler", AgeMS: 700_000}}
	}
	if p.sealed[in.Name] || m.terminates(p, i) {
		in.State = "released"
	}
	return in
}

// PutPlan stores a decision.
func (m *many) PutPlan(_ context.Context, name string, ifVersion int64, u brokerapi.PutPlan) (plan brokerapi.Plan, err error) {
	err = m.with(name, func(p *pool) error {
		if version := versionOf(p.plan); version != ifVersion {
			return &brokerapi.Problem{Code: brokerapi.CodePlanVersion, Status: 412}
		}
		for _, s := range u.Seal {
			p.sealed[s.Instance] = true
		}
		plan = brokerapi.Plan{Version: ifVersion + 1, Desired: u.Desired, Target: u.Target, EmptyWhen: u.EmptyWhen, Body: u.Body}
		stored := plan
		p.plan = &stored
		return nil
	})
	return plan, err
}

func versionOf(p *brokerapi.Plan) int64 {
	if p == nil {
		return 0
	}
	return p.Version
}

// Drain changes nothing: what is to be marked is marked.
func (m *many) Drain(_ context.Context, _, name string, _ brokerapi.DrainRequest) (brokerapi.Drain, error) {
	return brokerapi.Drain{Result: brokerapi.DrainEmpty, Instance: name, Owner: "scaler"}, nil
}

// Uncordon changes nothing either.
func (m *many) Uncordon(context.Context, string, string, string) error { return nil }

// View is what the scaler sees of Kubernetes.
func (m *many) View(ref scaler.Ref) (w scaler.Workload, err error) {
	err = m.with(ref.Name, func(p *pool) error {
		w = scaler.Workload{Name: ref.Name, Replicas: p.spec, Status: m.status(p), Minimum: 1, Maximum: mostWanted}
		for i := range w.Status {
			w.Pods = append(w.Pods, scaler.Pod{Ordinal: i, UID: strconv.Itoa(i), Ready: true, Started: true, AgeMS: 1_000_000, Terminating: m.terminates(p, i)})
		}
		w.HPA = autoscalerOf(newHPA(ref.Name, ref.Name, "", 1, mostWanted, unlimited(m.tol), unlimited(m.tol)))
		return nil
	})
	return w, err
}

// status is the StatefulSet's status.replicas. Pods that terminate go on doing so.
func (m *many) status(p *pool) int {
	if m.dying > 0 {
		return max(p.spec, m.present+m.dying)
	}
	return p.spec
}

// terminates reports whether the pod of an ordinal does.
func (m *many) terminates(p *pool, i int) bool {
	return i >= p.spec || i >= m.present && i < m.present+m.dying
}

// Live is spec.replicas now.
func (m *many) Live(_ context.Context, ref scaler.Ref) (n int, err error) {
	err = m.with(ref.Name, func(p *pool) error { n = p.spec; return nil })
	return n, err
}

// Event is not kept.
func (m *many) Event(scaler.Ref, scaler.Event) {}

func (m *many) scales() scales {
	return scales{
		read: func(name string) (s *autoscalingv1.Scale, err error) {
			err = m.with(name, func(p *pool) error { s = scaleOf(name, int32(p.spec), int32(m.status(p))); return nil })
			return s, err
		},
		write: func(name string, n int32) error {
			return m.with(name, func(p *pool) error { p.spec = int(n); p.written = append(p.written, p.spec); return nil })
		},
	}
}

func metadataOfMany(name string) map[string]string {
	return map[string]string{"pool": name, "targetSessionsPerInstance": "1", "cooldownWindow": "0s", "emptyDwell": "0s"}
}

// reached returns by wanted number what the HPA makes of spec.replicas at first.
func (m *many) reached(t *testing.T) (got [mostWanted + 1]int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s, err := scaler.New(scaler.Options{Source: m, Cluster: m, Logger: slog.New(slog.DiscardHandler), Interval: 8 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		k := newKEDA(s, metadataOfMany)
		api := fake.NewSimpleClientset() //nolint:staticcheck // nobody applies fields here, and it is made a hundred times
		// The HPAs' status is not looked at; without it the controller syncs once in a period.
		api.PrependReactor("update", "horizontalpodautoscalers", func(a clienttesting.Action) (bool, runtime.Object, error) {
			return true, a.(clienttesting.UpdateAction).GetObject(), nil
		})
		for name := range m.pools {
			h := newHPA(name, name, "s0-roomscaler-"+name, 1, mostWanted, unlimited(m.tol), unlimited(m.tol))
			if _, err := api.AutoscalingV2().HorizontalPodAutoscalers(namespace).Create(ctx, h, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			// KEDA asks for the spec when it makes the HPA.
			if _, err := k.server.GetMetricSpec(ctx, k.ref(namespace, name)); err != nil {
				t.Fatal(err)
			}
		}
		var planners sync.WaitGroup
		planners.Go(func() { s.Run(ctx) })
		time.Sleep(9 * time.Second) // two looks of each planner
		f := informers.NewSharedInformerFactory(api, resync)
		stopped := runHPAs(ctx, api, f, m.scales(), k, m.tol.flag)
		f.Start(ctx.Done())
		time.Sleep(syncPeriod + time.Second)
		synctest.Wait()
		m.mu.Lock()
		for _, p := range m.pools {
			got[p.wanted] = m.present
			for i, n := range p.written {
				switch {
				case i == 0:
					got[p.wanted] = n
				case n != p.wanted+m.dying: // after an overshoot that may be within reach
					t.Errorf("%d wanted of %d: then spec.replicas was written again: %d", p.wanted, m.present, p.written)
				}
			}
		}
		m.mu.Unlock()
		cancel()
		planners.Wait()
		<-stopped
		f.Shutdown()
		time.Sleep(time.Second) // controllers do not wait for a sync that is under way
	})
	return got
}

// allPairs compares what is reached from each present number with the least and the most that is right.
func allPairs(t *testing.T, dying int, tol tolerance, right func(present, wanted int) (low, high int)) {
	t.Helper()
	pairs(t, 1, dying, tol, right)
}

// pairs does so for all present numbers up to 21 and then for each of so many.
func pairs(t *testing.T, stride, dying int, tol tolerance, right func(present, wanted int) (low, high int)) {
	t.Helper()
	var wrong []string
	for present := 1; present <= mostPresent; present++ {
		if present > 21 && present%stride != 0 {
			continue
		}
		got := newMany(present, dying, tol).reached(t)
		for wanted := 1; wanted <= mostWanted; wanted++ {
			if low, high := right(present, wanted); got[wanted] < low || got[wanted] > high {
				wrong = append(wrong, fmt.Sprintf("%d of %d: %d, expected %d to %d", wanted, present, got[wanted], low, high))
			}
		}
	}
	if len(wrong) > 0 {
		t.Errorf("%d pairs are wrong (wanted of present: reached):\n%s", len(wrong), strings.Join(wrong[:min(len(wrong), 20)], "\n"))
	}
}

// asWanted is what tolerance 0 lets be reached.
func asWanted(_, wanted int) (low, high int) { return wanted, wanted }

// inBand is what a tolerance of 0.1 lets be reached: downwards a number whose rounding leaves the band, upwards the
// first one beyond it. All in tenths, because the product's own sums are not to be trusted here.
func inBand(present, wanted int) (low, high int) {
	n := wanted
	switch {
	case wanted < present && 10*(wanted-1) < 9*present:
	case wanted <= present:
		n = present
	case 10*wanted <= 11*present:
		n = 11*present/10 + 1
	}
	return n, n
}

func TestEveryPair(t *testing.T) {
	t.Run("with tolerance 0 both ways what is wanted is reached", func(t *testing.T) {
		gate(t)
		allPairs(t, 0, exact(), asWanted)
	})
	t.Run("with tolerance 0 both ways it is reached while a pod terminates, whose ordinal does not count", func(t *testing.T) {
		gate(t)
		pairs(t, 10, 1, exact(), func(present, wanted int) (low, high int) {
			if wanted > present {
				wanted = min(wanted+1, mostWanted)
			}
			return wanted, wanted
		})
	})
	t.Run("with a tolerance of 0.1 it is reached, held or overshot to the first number that can be", func(t *testing.T) {
		gate(t)
		allPairs(t, 0, band(), inBand)
	})
	t.Run("with a tolerance of 0.1 no pool grows by a pod that terminates", func(t *testing.T) {
		gate(t)
		pairs(t, 10, 1, band(), func(present, wanted int) (low, high int) {
			if wanted <= present {
				return wanted, present
			}
			_, high = inBand(present+1, wanted+1)
			return min(wanted+1, mostWanted), min(high, mostWanted)
		})
	})
	t.Run("without the gate the rules for a tolerance of 0.1 hold", func(t *testing.T) {
		ungated(t)
		allPairs(t, 0, band(), inBand)
	})
	t.Run("they hold too if the controller manager's flag is 0, which the scaler cannot see", func(t *testing.T) {
		pairs(t, 10, 0, tolerance{flag: 0}, inBand)
	})
}
