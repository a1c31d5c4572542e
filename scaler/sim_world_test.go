package scaler_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/roomscaler/roomscaler/scaler"
)

// simOptions are the conditions of one run.
type simOptions struct {
	seed      uint64
	tolerance float64
	noFloor   bool // switch: numbers ignore the floor, and the store does not check seals
	noLedger  bool // switch: a release ends at once, and rises are not guarded
	firstCut  bool // end with the first room that is cut off
	length    time.Duration
	// kubernetes: the replicas read the StatefulSet, its pods and the autoscaler, up to 3 s late; some pods
	// wait for a machine; and the autoscaler is answered as its tolerance demands.
	kubernetes bool
}

// simReplica is one replica of the scaler: it plans, and answers what it last saw stored.
type simReplica struct {
	view  int
	began int64 // of the fetch; -1: never
	next  int64
	apply func()
	scale *scaler.Workload // as last read
}

type simWorld struct {
	o        simOptions
	rng      *rand.Rand
	now      int64
	broker   *simBroker
	pods     map[int]*simPod
	spec     int
	write    func() // the autoscaler's, on its way
	writeAt  int64
	replicas []*simReplica
	target   scaler.Target
	outage   [2]int64 // the replicas cannot reach the broker
	mute     [2]int64 // the broker's looks fail
	burstAt  int64
	seen     *scaler.Workload // what the watches have brought
	seenNext int64

	held, scaleIns, cut, placed, outages, unknown, byHand, highest int
}

func newWorld(t testing.TB, o simOptions) *simWorld {
	w := &simWorld{
		o: o, rng: rand.New(rand.NewPCG(o.seed, 1)), now: 1000, spec: 2, pods: map[int]*simPod{}, burstAt: -1,
		replicas: []*simReplica{{began: -1}, {began: -1, next: 1700}},
		target: target(t, "targetSessionsPerInstance", "20", "spareSessions", "6", "minInstances", "2", "maxInstances", "30", "cooldownWindow", "40s",
			"emptyDwell", "8s", "onGraceExpired", "hold", "releaseGuard", "60s"),
	}
	w.broker = &simBroker{target: 20, noSealCheck: o.noFloor, noLedger: o.noLedger, instances: map[int]*simInstance{}}
	w.schedule()
	return w
}

func (w *simWorld) between(low, high int64) int64 { return low + w.rng.Int64N(high-low+1) }

// schedule sets the next trouble.
func (w *simWorld) schedule() {
	start := w.now + w.between(300_000, 1_200_000)
	span := [2]int64{start, start + w.between(100_000, 700_000)}
	if w.rng.IntN(2) == 0 {
		w.outage = span
	} else {
		w.mute = span
	}
	w.outages++
}

func within(span [2]int64, now int64) bool { return span[0] <= now && now < span[1] }

func (w *simWorld) run() {
	for end := w.now + w.o.length.Milliseconds(); w.now < end && !(w.o.firstCut && w.cut > 0); w.now += 1000 {
		w.endRooms()
		w.arrive()
		w.statefulSet()
		w.sweep()
		for _, r := range w.replicas {
			w.plan(r)
		}
		w.autoscale()
		if w.rng.IntN(900) == 0 {
			w.spec += 1 + w.rng.IntN(4) // somebody's hand
			w.byHand++
		}
		if w.now > w.outage[1] && w.now > w.mute[1] {
			w.schedule()
		}
	}
}

func (w *simWorld) endRooms() {
	for _, in := range w.broker.instances {
		for r := range in.rooms {
			if w.now >= r.ends {
				delete(in.rooms, r)
			}
		}
	}
}

// arrive brings rooms in waves, and sometimes a burst right after a lower number was stored.
func (w *simWorld) arrive() {
	wave := 0.5 - 0.5*math.Cos(2*math.Pi*float64(w.now)/600_000)
	rate := 0.03 + 0.9*wave*wave
	n := 0
	for rate > w.rng.Float64() {
		n++
		rate -= 0.5
	}
	if w.now == w.burstAt {
		n += 10 + w.rng.IntN(15)
	}
	for range n {
		life := int64(w.rng.ExpFloat64()*80_000) + 5000
		if w.broker.claim(simRoom{people: 1 + w.rng.IntN(6), ends: w.now + life, since: w.now}, w.now) != nil {
			w.placed++
		}
	}
}

// statefulSet is the controller of a Parallel StatefulSet. A pod that is deleted takes its rooms with it at once:
// there is no preStop hook here to make good what the number got wrong.
func (w *simWorld) statefulSet() {
	for _, i := range slices.Sorted(maps.Keys(w.pods)) { // in order, so that a seed tells all
		p := w.pods[i]
		switch {
		case p.dying && w.now >= p.goneAt:
			delete(w.pods, i)
		case !p.dying && i >= w.spec:
			p.dying, p.goneAt = true, w.now+w.between(2000, 40_000)
			w.scaleIns++
			if in, ok := w.broker.instances[i]; ok && in.Incarnation == p.life {
				w.cut += len(in.rooms)
				clear(in.rooms)
			}
		}
	}
	for i := range w.spec {
		if _, ok := w.pods[i]; !ok {
			w.pods[i] = newPod(i, w.now, w.rng)
			if w.o.kubernetes && w.rng.IntN(12) == 0 {
				w.pods[i].ready += w.between(60_000, 400_000) // it waits for a machine
			}
		}
	}
	if w.o.kubernetes && (w.seen == nil || w.now >= w.seenNext) {
		w.seen, w.seenNext = w.workload(), w.now+w.between(0, 3000)
	}
	w.highest = max(w.highest, w.spec)
}

func (w *simWorld) sweep() {
	if within(w.mute, w.now) || w.now/1000%3 != 0 {
		for i := range w.pods {
			if in, ok := w.broker.instances[i]; ok {
				in.listed = w.now
			}
		}
		return
	}
	for i, p := range w.pods {
		switch {
		case p.dying:
			w.broker.instance(i, w.now).listed = w.now
		case w.now >= p.ready:
			w.broker.look(p, w.now)
		case w.now >= p.ready-3000:
			w.broker.instance(i, w.now).listed = w.now
		}
	}
	w.broker.forget(w.now)
}

// plan lets a replica fetch the facts now and carry the decision out up to 3 s later.
func (w *simWorld) plan(r *simReplica) {
	if w.now < r.next || within(w.outage, w.now) {
		return
	}
	if r.apply != nil {
		r.apply()
		r.apply, r.next = nil, w.now+w.between(1500, 3500)
		return
	}
	f, began := w.broker.facts(w.now), w.now
	in := scaler.Input{Facts: f, Ref: object, Target: w.target, Cluster: w.seen}
	d := scaler.Decide(in)
	if d.AskLive {
		in.Live = ptr(w.spec)
		d = scaler.Decide(in)
	}
	r.scale = w.seen
	if w.o.noFloor && d.Why.Dnow <= d.Why.Previous {
		d.Desired = min(d.Why.Previous, max(d.Why.Dcool, d.Why.Minimum))
		d.Put.Desired = d.Desired
		d.Store = d.Store || d.Desired != d.Why.Previous
		if d.Put.Body == nil {
			d.Put.Body = f.Plan.Body
		}
	}
	if w.o.noLedger {
		d.Put.GuardMS = 0
	}
	if f.Plan != nil {
		r.view, r.began = f.Plan.Desired, began
	}
	r.next = w.now + w.between(0, 3000)
	r.apply = func() { w.carryOut(r, d) }
}

func (w *simWorld) carryOut(r *simReplica, d scaler.Decision) {
	for _, name := range d.Uncordon {
		w.broker.mark(name, false, w.now)
	}
	for _, name := range d.Cordon {
		w.broker.mark(name, true, w.now)
	}
	if !d.Store || !w.broker.put(d.IfVersion, d.Put, w.now) {
		return
	}
	r.view, r.began = d.Put.Desired, w.now
	if d.Desired < d.Why.Previous && w.rng.IntN(2) == 0 {
		w.burstAt = w.now + 2000
	}
}

// autoscale is KEDA and the HPA: every 15 s one answer, whose effect comes up to 10 s later.
func (w *simWorld) autoscale() {
	if w.write != nil && w.now >= w.writeAt {
		w.write()
		w.write = nil
	}
	if w.now/1000%15 != 0 {
		return
	}
	r := w.replicas[w.rng.IntN(len(w.replicas))]
	if r.began < 0 || w.now-r.began >= scaler.ServeTTL.Milliseconds() {
		w.unknown++
		return
	}
	value := float64(r.view)
	if w.o.kubernetes {
		v, err := r.scale.Answer(r.view)
		if err != nil {
			w.held++
			return
		}
		value = v
	}
	desired := autoscale(value, len(w.pods), w.autoscaler())
	w.writeAt = w.now + w.between(0, 10_000)
	w.write = func() { w.spec = desired }
}

func (w *simWorld) autoscaler() *scaler.Autoscaler {
	return &scaler.Autoscaler{Name: "keda-hpa-janus", Minimum: 1, Maximum: 40, ScaleUp: w.o.tolerance, ScaleIn: w.o.tolerance, WindowMS: -1}
}

// workload is what the API server has now.
func (w *simWorld) workload() *scaler.Workload {
	out := &scaler.Workload{Name: "janus", Replicas: w.spec, Status: len(w.pods), Minimum: 2, Maximum: 30, HPA: w.autoscaler()}
	for _, i := range slices.Sorted(maps.Keys(w.pods)) {
		p := w.pods[i]
		out.Pods = append(out.Pods, scaler.Pod{
			Ordinal: i, UID: p.life, Terminating: p.dying, Ready: w.now >= p.ready, Started: w.now >= p.ready-3000,
			Unschedulable: w.now < p.ready-20_000, AgeMS: w.now - p.born,
		})
	}
	return out
}
