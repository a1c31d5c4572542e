package ha

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/httpapi"
	"github.com/roomscaler/roomscaler/broker/memstore"
	"github.com/roomscaler/roomscaler/scaler"
)

// decision is one that has been stored.
type decision struct {
	desired int
	at      time.Time
}

// notary is a store that remembers all decisions.
type notary struct {
	broker.Store
	mu        sync.Mutex
	decisions []decision // by version, which begins with 1
	jumps     []string   // versions that do not follow on the one before
}

func (n *notary) PutPlan(ctx context.Context, term broker.Term, u broker.PlanUpdate) (broker.Plan, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, err := n.Store.PutPlan(ctx, term, u)
	if err != nil {
		return p, err
	}
	if int(p.Version) != len(n.decisions)+1 {
		n.jumps = append(n.jumps, fmt.Sprintf("%d after %d", p.Version, len(n.decisions)))
	}
	n.decisions = append(n.decisions, decision{p.Desired, time.Now()})
	return p, nil
}

// stands reports whether a decision for so many stood at some moment of the time in which an answer may rest on it.
func (n *notary) stands(desired int, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := len(n.decisions) - 1; i >= 0; i-- {
		if n.decisions[i].desired == desired {
			return true
		}
		if now.Sub(n.decisions[i].at) >= scaler.ServeTTL {
			return false // the ones before have not stood since
		}
	}
	return false
}

// tally is what a run has shown.
type tally struct {
	kills, lost, stored, served, unknown, scaleOuts, scaleIns, placed, refused, cut, highest int
	strange                                                                                  []string // served and not stored
}

// world is a pool with its application, its StatefulSet, its autoscaler and its scalers, in a synctest bubble.
type world struct {
	t       *testing.T
	dice    *dice
	media   *media
	notary  *notary
	service *broker.Service
	wire    wire
	keda    *keda
	spec    int
	write   func() // the autoscaler's, on its way
	writeAt time.Time
	killAt  time.Time
	rooms   []ending
	tally
}

// ending is when the people of a room leave, and with them the application's interest in it.
type ending struct {
	room string
	at   time.Time
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{
		t: t, dice: &dice{rng: rand.New(rand.NewPCG(seed, 1))}, media: &media{pods: map[int]*pod{}}, spec: 2,
		notary: &notary{Store: memstore.New(memstore.Options{})},
	}
	var err error
	w.service, err = broker.NewService(broker.Config{Pool: "janus", Placement: broker.Packed, Target: 40, Key: broker.RoomKey("0123456789abcdef")}, w.notary, w.media, w.media, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.wire = wire{httpapi.New(map[string]httpapi.Served{"janus": {Pool: w.service}}, httpapi.Options{}), w.dice, &atomic.Int64{}}
	w.keda = &keda{replicas: []*replica{{}, {}, {}}, ref: &pb.ScaledObjectRef{Name: "janus", Namespace: "media", ScalerMetadata: map[string]string{
		"pool": "janus", "targetSessionsPerInstance": "40", "spareSessions": "10", "minInstances": "2", "maxInstances": "30",
		"cooldownWindow": "1m", "emptyDwell": "10s", "onGraceExpired": "hold", "releaseGuard": "60s",
	}}}
	return w
}

// run lets so much time pass.
func (w *world) run(length time.Duration) {
	ctx, cancel := context.WithCancel(w.t.Context())
	swept := make(chan struct{})
	go func() { defer close(swept); w.service.Run(ctx, nil) }()
	defer func() {
		for _, r := range w.keda.replicas {
			if r.keda != nil {
				r.kill()
			}
		}
		cancel()
		<-swept
	}()
	began := time.Now()
	w.killAt = began.Add(time.Minute)
	for s := 0; time.Since(began) < length; s++ {
		w.depart()
		w.statefulSet()
		w.arrive(time.Since(began))
		w.replicas()
		if s%15 == 0 {
			w.autoscale()
		}
		w.land()
		time.Sleep(time.Until(began.Add(time.Duration(s+1) * time.Second)))
	}
	w.notary.mu.Lock()
	defer w.notary.mu.Unlock()
	w.stored, w.lost = len(w.notary.decisions), int(w.wire.lost.Load())
}

// depart ends the rooms whose time is over.
func (w *world) depart() {
	kept := w.rooms[:0]
	for _, r := range w.rooms {
		if time.Now().Before(r.at) {
			kept = append(kept, r)
			continue
		}
		if err := w.service.DeleteRoom(w.t.Context(), r.room, 0); err != nil {
			kept = append(kept, r) // tried again
		}
	}
	w.rooms = kept
}

// arrive brings rooms in waves of ten minutes.
func (w *world) arrive(passed time.Duration) {
	wave := 0.5 - 0.5*math.Cos(2*math.Pi*passed.Minutes()/10)
	for rate := 0.03 + 0.9*wave*wave; rate > w.dice.float(); rate -= 0.5 {
		people, life := 1+w.dice.below(6), time.Duration(w.dice.exp()*80*float64(time.Second))+5*time.Second
		name := fmt.Sprint("room-", w.placed+w.refused)
		placed, _, err := w.service.CreateRoom(w.t.Context(), broker.CreateRequest{Room: name, Expected: people})
		if err == nil {
			err = w.media.join(placed, people)
		}
		switch {
		case err == nil:
			w.placed++
			w.rooms = append(w.rooms, ending{name, time.Now().Add(life)})
		case errors.Is(err, broker.ErrNoCapacity), errors.Is(err, broker.ErrRebuilding):
			w.refused++
		default:
			w.refused++
			w.t.Logf("a room was not made: %v", err)
		}
	}
}

// statefulSet is the controller of a Parallel StatefulSet. A pod that it deletes takes its rooms with it at once: no
// drain hook here makes good what a number got wrong.
func (w *world) statefulSet() {
	w.media.mu.Lock()
	defer w.media.mu.Unlock()
	now := time.Now()
	for i, p := range w.media.pods {
		switch {
		case !p.goneAt.IsZero() && now.After(p.goneAt):
			delete(w.media.pods, i)
		case p.goneAt.IsZero() && i >= w.spec:
			p.goneAt = now.Add(w.dice.between(2*time.Second, 40*time.Second))
			w.scaleIns++
			for _, r := range p.rooms {
				if r.people > 0 {
					w.cut++
				}
			}
		}
	}
	for i := range w.spec {
		if w.media.pods[i] == nil {
			w.media.pods[i] = &pod{readyAt: now.Add(w.dice.between(3*time.Second, 18*time.Second)), rooms: map[broker.Epoch]*room{}}
		}
	}
	w.highest = max(w.highest, w.spec)
}

// replicas kills one every few seconds, and brings the dead back.
func (w *world) replicas() {
	now := time.Now()
	for _, r := range w.keda.replicas {
		if r.keda == nil && !now.Before(r.back) {
			r.start(w.t, w.wire)
		}
	}
	if now.Before(w.killAt) {
		return
	}
	w.killAt = now.Add(w.dice.between(2*time.Second, 8*time.Second))
	if r := w.keda.replicas[w.dice.below(3)]; r.keda != nil {
		time.Sleep(w.dice.between(0, 500*time.Millisecond)) // not in step with anything
		r.kill()
		r.back = time.Now().Add(w.dice.between(0, 4*time.Second))
		w.kills++
	}
}

// autoscale is a synchronisation of the HPA without tolerance: the number is taken as it is, and written later.
func (w *world) autoscale() {
	n, err := w.keda.evaluate(w.t.Context())
	if err != nil {
		w.unknown++
		return
	}
	w.served++
	if now := time.Now(); !w.notary.stands(n, now) {
		w.strange = append(w.strange, fmt.Sprintf("%d at %s", n, now.Format(time.TimeOnly)))
	}
	n = min(max(n, 2), 30)
	w.writeAt = time.Now().Add(w.dice.between(0, 10*time.Second))
	w.write = func() {
		if n > w.spec {
			w.scaleOuts++
		}
		w.spec = n
	}
}

func (w *world) land() {
	if w.write != nil && !time.Now().Before(w.writeAt) {
		w.write()
		w.write = nil
	}
}
