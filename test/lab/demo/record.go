package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/test/lab/load"
	"github.com/roomscaler/roomscaler/test/lab/report"
	"github.com/roomscaler/roomscaler/test/lab/supervisor"
)

// sampleEvery is the time between two looks at a world.
const sampleEvery = 500 * time.Millisecond

// settled is how long the pool must have been at its least before a run is over.
const settled = 2 * time.Second

// recorder looks at a world and keeps what it saw.
type recorder struct {
	w    *world
	down chan struct{} // closed when the pool has come down after the load's fall

	mu      sync.Mutex
	load    *load.Load
	start   time.Time
	samples []report.Sample
	lanes   map[int]*report.Lane
	cuts    []report.Cut
	now     moment
	peak    int     // instances at most
	usage   float64 // instance seconds

	states map[string]string // of the instances, as the broker last said
	left   map[string]int    // rooms on them
	low    time.Time         // since when the pool is at its least; zero: it is not
}

// moment is what the live view shows.
type moment struct {
	report.Sample
	Phase string
	Pods  []podView
	Stats load.Stats
	Share float64 // of the run that is over, 0 to 1
	Over  bool
}

type podView struct {
	Name     string
	Kind     string // as a report's span
	Sessions int
	Rooms    int
}

func newRecorder(w *world) *recorder {
	return &recorder{w: w, down: make(chan struct{}), lanes: map[int]*report.Lane{}, states: map[string]string{}, left: map[string]int{}}
}

func (r *recorder) begin(l *load.Load) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.load, r.start = l, time.Now()
}

// room is load.Config.OnEvent.
func (r *recorder) room(e load.Event) {
	if e.Kind == load.Cut || e.Kind == load.Refused {
		r.w.log.Warn("room "+string(e.Kind), "room", e.Room.Name, "instance", e.Instance, "cause", e.Cause, "detail", e.Detail)
	}
	if e.Kind != load.Cut {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cuts = append(r.cuts, report.Cut{T: e.At.Sub(r.start).Seconds(), Lane: e.Instance, Room: e.Room.Name, People: e.Room.People, Cause: e.Cause, Detail: e.Detail})
}

func (r *recorder) run(ctx context.Context) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		r.sample(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (r *recorder) sample(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, time.Second)
	facts, err := r.w.brokers.Facts(call)
	cancel()
	stats, pods := r.load.Stats(), r.w.set.Pods()
	spec, status := r.w.set.Replicas()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil { // else what was said last still stands
		clear(r.states)
		clear(r.left)
		for _, in := range facts.Instances {
			r.states[in.Name], r.left[in.Name] = in.State, in.RoomsLeft
		}
	}
	now := time.Now()
	t := now.Sub(r.start).Seconds()
	s := report.Sample{T: t, Sessions: stats.People, Desired: spec, Present: status, Rooms: stats.Open, Cuts: stats.Cut}
	m := moment{Phase: r.w.phase(t), Stats: stats}
	for _, p := range pods {
		v := podView{Name: name(p.Ordinal), Kind: r.kind(p), Sessions: stats.At[name(p.Ordinal)], Rooms: r.left[name(p.Ordinal)]}
		if v.Kind != report.SpanUp {
			s.Draining++
		}
		m.Pods = append(m.Pods, v)
		r.lane(p.Ordinal, t, v)
	}
	if n := len(r.samples); n > 0 {
		r.usage += float64(status) * (t - r.samples[n-1].T)
	}
	r.peak = max(r.peak, status)
	r.samples = append(r.samples, s)
	m.Sample = s
	m.Share = min(1, t/r.w.profile.LongUntil[1].Seconds()*0.9)
	r.now = m
	r.settle(now, t, spec, status)
}

func (r *recorder) settle(now time.Time, t float64, spec, status int) {
	if spec != base || status != base || t < r.w.profile.LongUntil[1].Seconds() {
		r.low = time.Time{}
		return
	}
	if r.low.IsZero() {
		r.low = now
	}
	select {
	case <-r.down:
	default:
		if now.Sub(r.low) >= settled {
			close(r.down)
			r.now.Over, r.now.Phase, r.now.Share = true, "over", 1
		}
	}
}

func (r *recorder) kind(p supervisor.Pod) string {
	switch {
	case p.Cause != "":
		return report.SpanEnding
	case r.states[name(p.Ordinal)] == string(broker.StateReleased):
		return report.SpanReleased
	case r.states[name(p.Ordinal)] == string(broker.StateCordoned):
		return report.SpanDraining
	}
	return report.SpanUp
}

// lane lengthens the last span of an ordinal, or begins another.
func (r *recorder) lane(ordinal int, t float64, v podView) {
	l := r.lanes[ordinal]
	if l == nil {
		l = &report.Lane{Name: v.Name}
		r.lanes[ordinal] = l
	}
	n := len(l.Spans)
	fresh := n == 0 || t-l.Spans[n-1].To > 3*sampleEvery.Seconds()
	if !fresh {
		l.Spans[n-1].To = t
	}
	if fresh || l.Spans[n-1].Kind != v.Kind {
		l.Spans = append(l.Spans, report.Span{Kind: v.Kind, From: t, To: t})
	}
	if k := len(l.Load); fresh || l.Load[k-1].N != v.Sessions {
		if fresh && k > 0 { // it was gone meanwhile
			l.Load = append(l.Load, report.Load{T: l.Spans[n-1].To, N: 0})
		}
		l.Load = append(l.Load, report.Load{T: t, N: v.Sessions})
	}
}

func (r *recorder) current() moment {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// phases are the stretches of the load.
func (w *world) phases(end float64) []report.Phase {
	p := w.profile.Points
	at := []float64{0, p[2].At.Seconds(), p[3].At.Seconds(), p[4].At.Seconds(), p[5].At.Seconds(), w.profile.LongUntil[1].Seconds(), end}
	var list []report.Phase
	for i, name := range []string{"quiet", "ramp up", "peak", "fall", "long rooms stay", "quiet"} {
		if at[i] < end {
			list = append(list, report.Phase{Name: name, From: at[i], To: min(at[i+1], end)})
		}
	}
	return list
}

func (w *world) phase(t float64) string {
	name := ""
	for _, p := range w.phases(t + 1) {
		if p.From <= t {
			name = p.Name
		}
	}
	return name
}

func (r *recorder) verdict() Verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.load.Stats()
	v := Verdict{Rooms: s.Rooms, LeastRooms: 2 * r.w.o.Rooms, ByScaleIn: s.CutBy[string(supervisor.ScaleIn)], Refused: s.Refused, Most: r.peak}
	v.Others = s.Cut - v.ByScaleIn
	if n := len(r.samples); n > 0 {
		v.First, v.Last = r.samples[0].Present, r.samples[n-1].Present
	}
	return v
}

// page is the run's part of the report.
func (r *recorder) page(v Verdict) report.Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	end := 0.0
	if n := len(r.samples); n > 0 {
		end = r.samples[n-1].T
	}
	run := report.Run{Name: r.w.title(), About: r.w.about(), Verdict: v.Line(r.w.naive), Good: v.Good(), Target: r.w.o.target(), Samples: r.samples, Cuts: r.cuts, Phases: r.w.phases(end)}
	for _, i := range slices.Sorted(maps.Keys(r.lanes)) {
		run.Lanes = append(run.Lanes, *r.lanes[i])
	}
	tone := "good"
	if v.ByScaleIn > 0 {
		tone = "bad"
	}
	run.Tiles = []report.Tile{
		{Label: "rooms", Value: strconv.Itoa(v.Rooms)},
		{Label: "cut by scale-in", Value: strconv.Itoa(v.ByScaleIn), Tone: tone},
		{Label: "instances", Value: fmt.Sprintf("%d→%d→%d", v.First, v.Most, v.Last)},
		{Label: "people", Value: strconv.Itoa(r.load.Stats().Joins)},
		{Label: "instance minutes", Value: fmt.Sprintf("%.1f", r.usage/60)},
	}
	return run
}

func (w *world) about() string {
	if w.naive {
		return "ceil(sessions / target) after the same cool-down, the same brokers and placement; nothing holds a scale-in."
	}
	return "The scaler lowers the number only past instances that are empty; draining instances get no new room; preStop waits."
}
