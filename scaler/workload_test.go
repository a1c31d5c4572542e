package scaler_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/scaler"
)

// pods makes healthy pods of these ordinals.
func pods(ordinals ...int) []scaler.Pod {
	var out []scaler.Pod
	for _, i := range ordinals {
		out = append(out, scaler.Pod{Ordinal: i, UID: fmt.Sprintf("uid-%d", i), Ready: true, Started: true, AgeMS: 3_600_000})
	}
	return out
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// workload is a StatefulSet of r healthy pods with an autoscaler of tolerance 0 and the bounds of the examples.
func workload(r int, edit func(*scaler.Workload)) *scaler.Workload {
	w := &scaler.Workload{
		Name: "janus", Replicas: r, Status: r, Minimum: 2, Maximum: 60, Pods: pods(upTo(r)...),
		HPA: &scaler.Autoscaler{Name: "keda-hpa-janus", Minimum: 2, Maximum: 60, WindowMS: -1},
	}
	if edit != nil {
		edit(w)
	}
	return w
}

// decideOn runs the law as a planner does: once more with the live number where it is asked for.
func decideOn(f brokerapi.PoolFacts, tg scaler.Target, w *scaler.Workload) scaler.Decision {
	in := scaler.Input{Facts: f, Ref: object, Target: tg, Cluster: w}
	d := scaler.Decide(in)
	if d.AskLive {
		in.Live = &w.Replicas
		d = scaler.Decide(in)
	}
	return d
}

func codesOf(risks []scaler.Risk) string {
	var all []string
	for _, r := range risks {
		all = append(all, r.Code)
	}
	return strings.Join(all, " ")
}

// TestDecide_ExamplesOnKubernetes: with Kubernetes as it ought to be, and tolerance 0, the worked examples come out the same.
func TestDecide_ExamplesOnKubernetes(t *testing.T) {
	for _, e := range examples() {
		t.Run(e.name, func(t *testing.T) {
			f, tg, w := e.onKubernetes(t)
			d := decideOn(f, tg, w)
			if diff := cmp.Diff(e.want, outcomeOf(d)); diff != "" {
				t.Errorf("decision (-want +got):\n%s\n%s", diff, d.Why)
			}
			if v, err := w.Answer(d.Desired); err != nil || v != float64(d.Desired) {
				t.Errorf("answers %g, %v; want %d", v, err, d.Desired)
			}
		})
	}
}

// onKubernetes returns the example with the workload that goes with it.
func (e example) onKubernetes(t testing.TB) (brokerapi.PoolFacts, scaler.Target, *scaler.Workload) {
	t.Helper()
	tg := target(t, e.pair...)
	maximum := tg.MaxInstances
	m := tg.Metadata() // the bounds are the ScaledObject's
	delete(m, "minInstances")
	delete(m, "maxInstances")
	tg, err := scaler.ParseTarget(m)
	if err != nil {
		t.Fatal(err)
	}
	rec := record(t, tg, e.r)
	edit := e.edit
	if edit == nil {
		edit = func(*brokerapi.PoolFacts, *scaler.Record) {}
	}
	edit(&brokerapi.PoolFacts{}, &rec)
	f := facts(t, e.r, rec, tg, e.with...)
	edit(&f, &rec)
	r := e.r
	if f.Plan == nil {
		r = f.Floor
	}
	w := workload(r, func(w *scaler.Workload) {
		w.Maximum, w.HPA.Maximum = maximum, maximum
		w.HPA.Current, w.HPA.Desired = r, r
		for i := range f.Instances {
			in := &f.Instances[i]
			p := &scaler.Pod{}
			if in.Ordinal < r {
				p = &w.Pods[in.Ordinal]
			} else {
				w.Pods = append(w.Pods, pods(in.Ordinal)...)
				w.Status++
				p = &w.Pods[len(w.Pods)-1]
			}
			p.Terminating = in.State == "released" && in.Ordinal >= r
			if in.State == "starting" {
				p.Ready, p.Started, p.AgeMS = false, true, in.KnownMS
			}
		}
	})
	return f, tg, w
}

// TestDecide_ExamplesWithTolerance: what the autoscaler's default tolerance makes of the same.
func TestDecide_ExamplesWithTolerance(t *testing.T) {
	// desired is stored; reached is what spec.replicas becomes; -1: held by an error.
	want := map[string]struct{ desired, reached int }{
		"1": {10, 10}, "2": {9, 9}, "3": {23, 23}, "4": {29, 29}, "5": {12, 12}, "6": {19, 19}, "7": {12, 12}, "8": {25, 25}, "9": {12, 12},
		"10": {20, 20}, "10b": {20, 20}, "11": {14, 14}, "12": {20, 20}, "13": {20, 15},
	}
	for _, e := range examples() {
		t.Run(e.name, func(t *testing.T) {
			f, tg, w := e.onKubernetes(t)
			w.HPA.ScaleUp, w.HPA.ScaleIn = 0.1, 0.1
			d := decideOn(f, tg, w)
			number, _, _ := strings.Cut(e.name, ":")
			reached := min(w.Replicas, w.HPA.Maximum) // after an error it stays, its bounds aside
			if v, err := w.Answer(d.Desired); err == nil {
				reached = autoscale(v, w.Status, w.HPA)
			}
			if d.Desired != want[number].desired || reached != want[number].reached {
				t.Errorf("stored %d and reached %d, want %+v; %s", d.Desired, reached, want[number], d.Why)
			}
			if reached < min(d.Why.Floor, w.HPA.Maximum) {
				t.Errorf("reached %d, below the floor %d", reached, d.Why.Floor)
			}
			if !strings.Contains(codesOf(d.Risks), scaler.RiskBand) {
				t.Errorf("risks %v do not tell of the tolerance", d.Risks)
			}
		})
	}
}

// TestG3_PodsThatMayNotGo: pods hold the number, though the broker does not know them.
func TestG3_PodsThatMayNotGo(t *testing.T) {
	pending := func(p scaler.Pod) scaler.Pod { p.Ready, p.Started = false, false; return p }
	for _, c := range []struct {
		name     string
		top      func(*scaler.Workload) // janus-3
		instance *brokerapi.Instance
		want     int
		held     string
	}{
		{"one that runs and that the broker does not know yet stays", nil, nil, 4, "the broker does not know it yet"},
		{"one whose containers have never run goes", func(w *scaler.Workload) { w.Pods[3] = pending(w.Pods[3]) }, nil, 3, ""},
		{"also when the broker has listed it and marked it", func(w *scaler.Workload) { w.Pods[3] = pending(w.Pods[3]) }, ptr(marked(starting(3, time.Minute), "scaler", time.Second, nil)), 3, ""},
		{"not before it is marked", func(w *scaler.Workload) { w.Pods[3] = pending(w.Pods[3]) }, ptr(starting(3, time.Minute)), 4, "not marked yet"},
		{"nor with a room on its way to it", func(w *scaler.Workload) { w.Pods[3] = pending(w.Pods[3]) }, ptr(func() brokerapi.Instance {
			in := marked(starting(3, time.Minute), "scaler", time.Second, nil)
			in.RoomsLeft = 1
			return in
		}()), 4, "has not answered yet"},
		{"one that is not there holds nothing", func(w *scaler.Workload) { w.Pods = w.Pods[:3]; w.Status = 3 }, nil, 3, ""},
		{"one that is taken away past the scaler goes with what is on it", func(w *scaler.Workload) { w.Replicas = 3; w.Pods[3].Terminating = true },
			ptr(marked(instance(3, 9), "scaler", time.Minute, nil)), 3, ""},
		{"but one that is ended and will come back stays", func(w *scaler.Workload) { w.Pods[3].Terminating = true },
			ptr(marked(instance(3, 9), "scaler", time.Minute, nil)), 4, "not empty for long enough"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tg := target(t)
			in := row(3, 30)
			if c.instance != nil {
				in = append(in, *c.instance)
			}
			d := decideOn(facts(t, 4, record(t, tg, 4), tg, in...), tg, workload(4, c.top))
			if d.Desired != c.want || c.held != "" && d.Why.FloorWhy != c.held {
				t.Fatalf("got %d, held by %q; want %d, %q; %s", d.Desired, d.Why.FloorWhy, c.want, c.held, d.Why)
			}
			sealed := slices.ContainsFunc(d.Put.Seal, func(s brokerapi.Seal) bool { return s.Instance == "janus-3" })
			if want := c.want == 3 && c.instance != nil; sealed != want {
				t.Errorf("seals %v", d.Put.Seal)
			}
		})
	}
}

// TestG4_LowerOnlyOnALiveNumber: what a watch has told is not enough for a lower number.
func TestG4_LowerOnlyOnALiveNumber(t *testing.T) {
	tg := target(t)
	f := facts(t, 4, record(t, tg, 4), tg, append(row(3, 30), vacated(3, time.Hour))...)
	in := scaler.Input{Facts: f, Ref: object, Target: tg, Cluster: workload(4, nil)}
	d := scaler.Decide(in)
	if d.Desired != 4 || !d.AskLive || d.Why.Rule != scaler.RuleUnread || len(d.Put.Seal) > 0 {
		t.Fatalf("not asked: got %s, ask %v, seals %v", d.Why, d.AskLive, d.Put.Seal)
	}
	in.LiveErr = errors.New("the API is away")
	if d = scaler.Decide(in); d.Desired != 4 || !strings.Contains(codesOf(d.Risks), scaler.RiskLive) {
		t.Errorf("not told: got %s, risks %v", d.Why, d.Risks)
	}
	in.LiveErr, in.Live = nil, ptr(4)
	if d = scaler.Decide(in); d.Desired != 3 || d.AskLive || len(d.Put.Seal) != 1 {
		t.Errorf("told: got %s, ask %v", d.Why, d.AskLive)
	}
	t.Run("and it is not asked for when nothing would be lowered", func(t *testing.T) {
		f := facts(t, 4, record(t, tg, 4), tg, row(4, 45)...)
		if d := scaler.Decide(scaler.Input{Facts: f, Ref: object, Target: tg, Cluster: workload(4, nil)}); d.AskLive {
			t.Error("it is")
		}
	})
}

// TestG5_ReleaseEndsByTheLiveNumber: time is not enough for the end of a release: the pod must be there, and asked for.
func TestG5_ReleaseEndsByTheLiveNumber(t *testing.T) {
	tg := target(t)
	for _, c := range []struct {
		name string
		edit func(*scaler.Workload)
		live int
		err  error
		want bool
	}{
		{"the pod is there and asked for", nil, 12, nil, true},
		{"spec.replicas does not ask for it", func(w *scaler.Workload) { w.Replicas = 11 }, 11, nil, false},
		{"the watch says so, the API server does not", nil, 11, nil, false},
		{"the API server does not answer", nil, 0, errors.New("away"), false},
		{"the pod is being ended", func(w *scaler.Workload) { w.Pods[11].Terminating = true }, 12, nil, false},
		{"the pod is not there", func(w *scaler.Workload) { w.Pods = w.Pods[:11] }, 12, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec := record(t, tg, 12)
			rec.Lows = []scaler.Sample{{At: now - 100_001, N: 11}, {At: now - 100_000, N: 12}}
			rec.Released = []scaler.Release{{Ordinal: 11, UID: "uid-11"}}
			f := facts(t, 12, rec, tg, append(row(11, 46), released(vacated(11, 2*time.Minute)))...)
			f.Queue.Participants = 30
			in := scaler.Input{Facts: f, Ref: object, Target: tg, Cluster: workload(12, c.edit)}
			d := scaler.Decide(in)
			if len(d.Put.Unseal) > 0 {
				t.Fatal("a release ended without asking the API server")
			}
			if d.AskLive {
				in.Live, in.LiveErr = &c.live, c.err
				if c.err != nil {
					in.Live = nil
				}
				d = scaler.Decide(in)
			}
			if got := len(d.Put.Unseal) == 1; got != c.want {
				t.Errorf("ends: got %v, want %v", got, c.want)
			}
			if c.err != nil && !strings.Contains(codesOf(d.Risks), scaler.RiskLive) {
				t.Errorf("risks %v do not tell that it cannot be known", d.Risks)
			}
		})
	}
}

// TestG3_Ledger: a pod that the broker never knew is released like one that it did.
func TestG3_Ledger(t *testing.T) {
	tg := target(t)
	never := func(w *scaler.Workload) {
		w.Pods[3].Started, w.Pods[3].Ready, w.Pods[3].Unschedulable = false, false, true
	}
	f := facts(t, 4, record(t, tg, 4), tg, row(3, 30)...)
	d := decideOn(f, tg, workload(4, never))
	if d.Desired != 3 {
		t.Fatalf("got %s, want 3", d.Why)
	}
	f = apply(f, d)
	if got, want := readRecord(t, f.Plan.Body).Released, []scaler.Release{{Ordinal: 3, UID: "uid-3"}}; !cmp.Equal(got, want) {
		t.Fatalf("ledger %v, want %v", got, want)
	}
	t.Run("it does not hold the number up until it is gone, though it starts meanwhile", func(t *testing.T) {
		g := later(f, 5*time.Second)
		if d := decideOn(g, tg, workload(4, nil)); d.Desired != 3 {
			t.Errorf("got %s, want 3", d.Why)
		}
	})
	t.Run("once it is gone and not asked for, another one there was started by somebody else", func(t *testing.T) {
		g := later(f, 5*time.Second)
		g = apply(g, decideOn(g, tg, workload(3, nil)))
		if got := readRecord(t, g.Plan.Body).Released; len(got) > 0 {
			t.Fatalf("ledger %v, want none", got)
		}
		for range 21 { // until no number of before explains it
			g = later(g, 5*time.Second)
			g = apply(g, decideOn(g, tg, workload(3, nil)))
		}
		d := decideOn(later(g, time.Second), tg, workload(4, func(w *scaler.Workload) { w.Pods[3].UID = "another" }))
		if d.Desired != 4 || d.Why.Rule != scaler.RuleAdopt || !strings.Contains(codesOf(d.Risks), scaler.RiskHand) {
			t.Errorf("got %s, risks %v; want 4 by adopt, and that it was noticed", d.Why, d.Risks)
		}
	})
}

// TestG4_PodsOnTheirWay: what is coming is capacity, what hangs is made up for, what ends is neither.
func TestG4_PodsOnTheirWay(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*scaler.Workload) // of janus-9, which the broker does not know
		want int                    // to hold 500
	}{
		{"one that has not been made", func(w *scaler.Workload) { w.Pods = w.Pods[:9] }, 10},
		{"one that waits for a machine, however long", func(w *scaler.Workload) { w.Pods[9] = scaler.Pod{Ordinal: 9, Unschedulable: true, AgeMS: 7_200_000} }, 10},
		{"one that is young", func(w *scaler.Workload) { w.Pods[9] = scaler.Pod{Ordinal: 9, Started: true, AgeMS: 179_000} }, 10},
		{"one that has been starting for too long", func(w *scaler.Workload) { w.Pods[9] = scaler.Pod{Ordinal: 9, Started: true, AgeMS: 180_000} }, 11},
		{"one that is being ended", func(w *scaler.Workload) { w.Pods[9].Terminating = true }, 11},
	} {
		t.Run(c.name, func(t *testing.T) {
			tg := target(t, "spareSessions", "0")
			rec := record(t, tg, 10)
			f := facts(t, 10, rec, tg, row(9, 50)...)
			f.Queue.Participants = 50
			if d := decideOn(f, tg, workload(10, c.edit)); d.Desired != c.want {
				t.Errorf("got %s, want %d", d.Why, c.want)
			}
		})
	}
	t.Run("the load of one that is taken away is not counted, that of one that comes back is", func(t *testing.T) {
		for replicas, want := range map[int]int{9: 405, 10: 450} {
			tg := target(t)
			w := workload(10, func(w *scaler.Workload) { w.Replicas = replicas; w.Pods[9].Terminating = true })
			if d := decideOn(facts(t, 10, record(t, tg, 10), tg, row(10, 45)...), tg, w); d.Why.Load != want {
				t.Errorf("spec.replicas %d: load %d, want %d", replicas, d.Why.Load, want)
			}
		}
	})
}

func TestDecide_Bounds(t *testing.T) {
	tg := target(t, "minInstances", "1", "maxInstances", "50")
	w := workload(4, func(w *scaler.Workload) { w.Minimum, w.Maximum = 3, 5 })
	f := facts(t, 4, record(t, tg, 4), tg, row(4, 50)...)
	f.Queue.Participants = 500
	d := decideOn(f, tg, w)
	if d.Desired != 5 || !strings.Contains(codesOf(d.Risks), scaler.RiskBounds) {
		t.Errorf("got %s, risks %v; want 5, the ScaledObject's, and that both are given", d.Why, d.Risks)
	}
	if got := d.Risks[0].Detail; !strings.Contains(got, "maxReplicaCount is 5") {
		t.Errorf("got %q", got)
	}
	m := tg.Metadata()
	delete(m, "minInstances")
	delete(m, "maxInstances")
	plain, err := scaler.ParseTarget(m)
	if err != nil {
		t.Fatal(err)
	}
	if d = decideOn(f, plain, w); strings.Contains(codesOf(d.Risks), scaler.RiskBounds) {
		t.Errorf("risks %v without bounds in the metadata", d.Risks)
	}
}

// TestG3_OrdinalsFromTheStart: the number counts from spec.ordinals.start; the broker's ordinals count from 0.
func TestG3_OrdinalsFromTheStart(t *testing.T) {
	tg := target(t)
	var in []brokerapi.Instance
	for i := 5; i < 9; i++ {
		in = append(in, instance(i, 30))
	}
	in = append(in, vacated(9, time.Hour))
	rec := record(t, tg, 5)
	rec.Start = 5
	f := facts(t, 10, rec, tg, in...) // the plan counts from 0
	w := workload(5, func(w *scaler.Workload) { w.Start = 5 })
	d := decideOn(f, tg, w)
	if d.Desired != 4 || d.Put.Desired != 9 || d.Stored != 5 || len(d.Put.Seal) != 1 || d.Put.Seal[0].Instance != "janus-9" {
		t.Errorf("got %s, plan %d, seals %v; want 4, plan 9, janus-9", d.Why, d.Put.Desired, d.Put.Seal)
	}
	t.Run("a changed start gives no number that counts from the old one, and takes nothing away", func(t *testing.T) {
		rec.Start = 0
		d := decideOn(facts(t, 5, rec, tg, in...), tg, w)
		if !d.Unfit || d.Desired != 5 || d.Put.Desired != 10 || len(d.Put.Seal) > 0 || !d.Store || !strings.Contains(codesOf(d.Risks), scaler.RiskStart) {
			t.Errorf("unfit %v, got %s, plan %d, seals %v, risks %v", d.Unfit, d.Why, d.Put.Desired, d.Put.Seal, d.Risks)
		}
	})
}

// TestG7_ChangesPastTheScaler: what no stored number explains is noticed, and with what probably did it.
func TestG7_ChangesPastTheScaler(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to int
		edit     func(*scaler.Workload, *scaler.Record)
		want     string // "": not noticed
	}{
		{"scaled up by hand", 10, 15, nil, "from 10 to 15 past the scaler, by somebody"},
		{"scaled down by hand", 10, 4, nil, "from 10 to 4 past the scaler, by somebody or something else; the pods from there on are ended"},
		{"a lower maximum", 10, 8, func(w *scaler.Workload, _ *scaler.Record) { w.Maximum = 8 }, "by maxReplicaCount"},
		{"paused at a number", 10, 3, func(w *scaler.Workload, _ *scaler.Record) { w.Paused = ptr(3) }, "by paused-replicas"},
		{"the idle number", 10, 2, func(w *scaler.Workload, _ *scaler.Record) { w.Idle = ptr(2) }, "by idleReplicaCount"},
		{"KEDA's zero", 10, 0, func(w *scaler.Workload, _ *scaler.Record) { w.Minimum = 0 }, "by KEDA's scaling to zero"},
		{"the tolerance's own number", 10, 11, func(w *scaler.Workload, _ *scaler.Record) { w.Status = 11; w.HPA.ScaleUp = 0.1 }, "by the autoscaler, whose tolerance"},
		{"the autoscaler follows", 12, 10, nil, ""},
		{"the autoscaler is on its way", 15, 12, nil, ""},
		{"the autoscaler follows a number that has been replaced", 10, 12, func(_ *scaler.Workload, r *scaler.Record) {
			r.Highs = []scaler.Sample{{At: now - 50_000, N: 12}}
		}, ""},
		{"nothing changes", 10, 10, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			tg := target(t)
			rec := record(t, tg, 10)
			rec.Scale = &scaler.Scaling{Replicas: c.from}
			w := workload(10, func(w *scaler.Workload) { w.Replicas = c.to; w.Status = 10 })
			if c.edit != nil {
				c.edit(w, &rec)
			}
			d := decideOn(facts(t, 10, rec, tg, row(10, 42)...), tg, w)
			var got, news string
			for _, r := range d.Risks {
				if r.Code == scaler.RiskHand {
					got = r.Detail
				}
			}
			for _, r := range d.News {
				if r.Code == scaler.RiskHand {
					news = r.Detail
				}
			}
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) || news != got || c.want != "" && !d.Store {
				t.Errorf("risk %q, new %q, stored %v; want %q", got, news, d.Store, c.want)
			}
		})
	}
}

// TestG5_GuardByTheDownscaleWindow: with a window of the autoscaler's of a minute an answer that was replaced has no effect.
func TestG5_GuardByTheDownscaleWindow(t *testing.T) {
	for window, want := range map[int64]int64{-1: 100_000, 59_999: 100_000, 60_000: 10_000} {
		tg := target(t, "spareSessions", "0")
		rec := record(t, tg, 4)
		rec.Lowered = now - 20_000
		f := facts(t, 4, rec, tg, row(4, 50)...)
		f.Queue.Participants = 30
		d := decideOn(f, tg, workload(4, func(w *scaler.Workload) { w.HPA.WindowMS = window }))
		if d.Desired != 5 || d.Put.GuardMS != want {
			t.Errorf("window %d ms: got %d with guard %d ms, want 5 with %d", window, d.Desired, d.Put.GuardMS, want)
		}
		// A pod that was not known when the number fell is there already: a late write may still take it away.
		d = decideOn(f, tg, workload(4, func(w *scaler.Workload) {
			w.HPA.WindowMS = window
			w.Pods = append(w.Pods, scaler.Pod{Ordinal: 4, UID: "other", Terminating: true})
		}))
		if d.Desired != 6 || d.Put.GuardMS != 100_000 {
			t.Errorf("window %d ms, a pod above the number: got %s with guard %d ms, want 6 with 100000", window, d.Why, d.Put.GuardMS)
		}
		// What somebody has started by hand is about to be undone by the answer before, whatever the window.
		f = facts(t, 4, record(t, tg, 4), tg, row(4, 50)...)
		d = decideOn(f, tg, workload(6, func(w *scaler.Workload) { w.HPA.WindowMS = window }))
		if d.Desired != 6 || d.Put.GuardMS != 100_000 {
			t.Errorf("window %d ms: got %s with guard %d ms, want 6 with 100000", window, d.Why, d.Put.GuardMS)
		}
	}
}

// TestDecide_FromZero: at 0 replicas, also by KEDA's own write, what waits raises the number.
func TestDecide_FromZero(t *testing.T) {
	tg := target(t, "spareSessions", "0")
	zero := func(w *scaler.Workload) { w.Minimum = 0 }
	for _, stored := range []int{0, 1} {
		rec := record(t, tg, stored)
		f := facts(t, stored, rec, tg)
		f.Queue = brokerapi.Queue{Rooms: 3, Participants: 60}
		if d := decideOn(f, tg, workload(0, zero)); d.Desired != 2 {
			t.Errorf("stored %d: got %s, want 2", stored, d.Why)
		}
	}
	f := facts(t, 0, record(t, tg, 0), tg)
	if d := decideOn(f, tg, workload(0, zero)); d.Desired != 0 || d.AskLive {
		t.Errorf("with nobody waiting: got %s", d.Why)
	}
}
