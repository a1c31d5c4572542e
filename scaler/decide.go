package scaler

import (
	"maps"
	"slices"
	"time"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

// Input is all that a decision rests on. The time is the facts' own (NowMS): no other
// clock is consulted.
type Input struct {
	Facts  brokerapi.PoolFacts
	Ref    Ref
	Target Target
	// Silent is how long ago KEDA last asked this replica for the ScaledObject.
	Silent time.Duration
	// Refused names instances whose release the store has refused since the facts were asked for last.
	Refused []string
	// Cluster is what Kubernetes says; nil where it is not read.
	Cluster *Workload
	// Live is spec.replicas as the API server has told it since the facts were asked for; nil: it has not been
	// asked, or LiveErr says why it has not told. Without it no lower number comes out, and no release ends.
	Live    *int
	LiveErr error
	// OwnerGone: the ScaledObject that has the pool is known not to be there any more.
	OwnerGone bool
}

// Hold says why there is no decision, and so no number.
type Hold string

// The reasons for having no number.
const (
	HoldNone       Hold = ""
	HoldRebuilding Hold = "the broker's directory is being rebuilt"
	HoldTaken      Hold = "another ScaledObject scales the pool"
)

// Decision is what to do. It takes effect in this order: marks, plan, answer.
type Decision struct {
	Hold  Hold
	Owner Ref // who has the pool, for HoldTaken

	Desired int
	// Stored is the number that the plan holds now. Like Desired it counts from Start, the StatefulSet's first
	// ordinal; Put.Desired counts from 0, as ordinals do at the broker.
	Stored, Start int
	// AskLive: there would be more to do if Live were known.
	AskLive bool
	// Unfit: the plan that is stored counts from another first ordinal, so that its number must not be answered.
	Unfit bool

	Cordon   []string // instances to mark, highest first
	Uncordon []string // instances whose scaler mark is to be removed
	Store    bool     // the plan must be stored; otherwise the stored one stands
	// IfVersion and Put are the plan to be stored; Put.Body is set only with Store.
	IfVersion int64
	Put       brokerapi.PutPlan

	Target Target // in force: the newest that KEDA has sent to any replica
	Why    Why
	Risks  []Risk
	News   []Risk // those that the decision before did not tell of
}

// Decide is the control law: a pure function of the facts, which hold the record of the
// decision before. Facts with unknown or missing parts never lead to a lower number.
// Deciding again at the same moment, after the decision was applied, changes nothing.
func Decide(in Input) Decision {
	f, now := in.Facts, in.Facts.NowMS
	if f.Phase != brokerapi.PhaseReady {
		return Decision{Hold: HoldRebuilding}
	}
	last, unreadable := readRecord(f.Plan, now)
	called := now - in.Silent.Milliseconds()
	t := in.Target
	// One that is silent itself takes over from nobody: two of them would take turns.
	kept := last != nil && last.Ref != in.Ref && !in.OwnerGone
	if kept && (now-last.CalledAt < takeover.Milliseconds() || in.Silent >= takeover) {
		return Decision{Hold: HoldTaken, Owner: last.Ref}
	}
	if last != nil && last.Ref == in.Ref && last.CalledAt > called {
		called = last.CalledAt
		if newer, err := ParseTarget(last.Metadata); err == nil {
			t = newer
		}
	}
	l := law{t: t, now: now, last: last, refused: in.Refused, live: in.Live != nil, liveErr: in.LiveErr}
	l.next.Ref, l.next.CalledAt, l.next.Metadata = in.Ref, called, t.Metadata()
	l.place(f, in)
	d := l.decide()
	if unreadable != nil {
		d.Risks = append(d.Risks, Risk{RiskRecord, unreadable.Error()})
	}
	l.finish(&d)
	return d
}

// law is one run of the law.
type law struct {
	f       brokerapi.PoolFacts
	t       Target
	now     int64
	last    *Record // nil: nothing is known of the time before
	next    Record
	refused []string

	w       *Workload // nil: Kubernetes is not read
	start   int       // the first ordinal
	live    bool      // w.Replicas is what the API server has just told
	liveErr error
	ask     bool // Live is wanted
	moved   bool // the first ordinal has changed: numbers of the record mean other instances

	r    int // the stored number
	seen survey
	low  floor
}

// place brings the facts and what Kubernetes says together: all ordinals count from the StatefulSet's first.
func (l *law) place(f brokerapi.PoolFacts, in Input) {
	l.f = f
	if in.Cluster == nil {
		return
	}
	w := *in.Cluster
	if in.Live != nil {
		w.Replicas = *in.Live
	}
	l.w, l.start = &w, w.Start
	l.t.MinInstances, l.t.MaxInstances = w.Minimum, w.Maximum
	l.moved = l.last != nil && l.last.Start != w.Start
	if w.Start == 0 {
		return
	}
	l.f.Floor = max(0, f.Floor-w.Start)
	l.f.Instances = slices.Clone(f.Instances)
	for i := range l.f.Instances {
		l.f.Instances[i].Ordinal -= w.Start
	}
	if f.Plan != nil {
		plan := *f.Plan
		plan.Desired = max(0, plan.Desired-w.Start)
		l.f.Plan = &plan
	}
}

func (l *law) decide() Decision {
	l.r = l.stored()
	l.begin()
	l.seen = observe(l.f, l.w, l.t, l.r, l.next.InRange)
	l.low = l.floor()
	w := l.reckon()
	d := Decision{Desired: w.Desired, Stored: l.r, Start: l.start, Target: l.t, Why: w}
	keep := max(min(w.Dcool, w.Maximum), w.Minimum)
	d.Cordon, d.Uncordon = l.marks(keep, min(w.Dnow, w.Maximum))
	d.Put = brokerapi.PutPlan{
		Term:      l.f.Term,
		Desired:   l.start + w.Desired,
		EmptyWhen: l.t.EmptyWhen,
		Seal:      l.seals(w.Desired),
		Unseal:    l.unseals(w.Desired),
		GuardMS:   l.guard(w.Desired).Milliseconds(),
	}
	if l.t.Metric != MetricRooms {
		d.Put.Target = l.t.PerInstance
	}
	l.next.Released, l.next.Scale = l.releases(w.Desired), scalingOf(l.w)
	d.AskLive, d.Unfit = l.ask, l.moved
	d.Risks = l.risks(w, d.Put.Seal)
	return d
}

// stored returns R. Without a plan, or with one whose number counts from another ordinal, it is the floor of the term, and no less than what is known to stand.
func (l *law) stored() int {
	if l.f.Plan != nil && l.f.Plan.Version > 0 && !l.moved {
		return l.f.Plan.Desired
	}
	r := l.f.Floor
	if l.w != nil {
		r = max(r, l.w.Replicas)
	}
	for i := range l.f.Instances {
		in := &l.f.Instances[i]
		if in.State != stateLost && in.State != stateReleased {
			r = max(r, in.Ordinal+1)
		}
	}
	return r
}

// begin carries the record on to now, before anything is decided.
func (l *law) begin() {
	n := &l.next
	n.Format, n.At, n.Start = recordFormat, l.now, l.start
	defer l.notice()
	if l.last == nil || l.moved {
		// Nobody knows what was answered before: all that is released stays so for a while.
		n.Lows = []Sample{{At: l.now, N: 0}}
		n.Lowered = -1
		for i := range l.f.Instances {
			if l.f.Instances[i].State == stateReleased {
				n.Lowered = l.now
			}
		}
		n.InRange = []Sample{{At: l.now, N: 0}}
		n.Highs = []Sample{{At: l.now, N: l.r}}
		return
	}
	n.Peaks, n.Lowered, n.InRange, n.Cordoned = l.last.Peaks, l.last.Lowered, l.last.InRange, l.last.Cordoned
	n.Lows = pushLow(l.last.Lows, l.now, l.r, l.settled())
	n.Highs = pushPeak(l.last.Highs, l.now, l.r, l.settled())
}

// reckon computes the number.
func (l *law) reckon() Why {
	t, s := l.t, &l.seen
	w := Why{
		Previous: l.r, PerInstance: t.PerInstance, Load: s.load, Unknown: s.unknown, Replaced: s.skipped,
		Coming: s.coming, Minimum: t.MinInstances, Maximum: t.MaxInstances,
	}
	w.Queued = l.f.Queue.Participants
	if t.Metric == MetricRooms {
		w.Queued = l.f.Queue.Rooms
	}
	w.Queued = min(max(w.Queued, 0), maxDemand)
	w.Spare = t.Spare.sessions(w.Load+w.Queued, t.PerInstance)
	w.Dload, w.Dslot = s.lowestFor(t.PerInstance, w.Queued, w.Spare)
	w.Dnow = max(w.Minimum, w.Dload, w.Dslot)
	w.Blind = l.r > 0 && s.fresh == 0
	if w.Blind {
		l.low.raise(l.r, "", "no instance in range has fresh data")
	}
	if l.f.Plan == nil || l.f.Plan.Version == 0 {
		l.low.raise(l.r, "", "the first number of a term")
	}
	w.Floor, w.FloorBy, w.FloorWhy = l.low.n, l.low.by, l.low.why
	w.Dcool = l.cool(w)

	want, keep := min(w.Dnow, w.Maximum), max(min(w.Dcool, w.Maximum), w.Minimum)
	switch {
	case w.Floor > l.r:
		w.Desired, w.Rule = max(w.Floor, want), RuleAdopt
	case want > l.r:
		w.Desired, w.Rule = want, RuleRise
	default:
		w.Desired = min(l.r, max(keep, w.Floor))
		w.Rule = ruleBelow(w, keep)
	}
	l.reach(&w, want)
	if l.w != nil && !l.live && w.Desired < l.r {
		l.ask = true
		w.Desired, w.Rule = l.r, RuleUnread
	}
	w.Fits = s.fits(w, w.Desired)
	return w
}

// ruleBelow names what decided when the load needs no more than there is.
func ruleBelow(w Why, keep int) Rule {
	switch {
	case w.Desired < w.Previous:
		return RuleLower
	case w.Dnow > w.Maximum:
		return RuleMaximum
	case w.Dnow >= w.Previous:
		return RuleSteady
	case keep >= w.Previous:
		return RuleCooldown
	}
	return RuleFloor
}

// reach bends the number to what the autoscaler's tolerance lets through: upwards to the first number that can be
// reached, downwards only in steps that can.
func (l *law) reach(w *Why, want int) {
	s := scaleOf(l.w)
	if s.mode() != ToleranceBand {
		return
	}
	if _, ok := s.reaches(w.Desired); ok || w.Desired == s.replicas {
		return
	}
	above := min(s.above(), l.t.MaxInstances)
	switch {
	case want > s.replicas && above > w.Desired:
		w.Desired, w.Rule = above, RuleBeyond
		// It is not undone at once either.
		n := &l.next
		n.Needed = max(n.Needed, above)
		n.Peaks = pushPeak(n.Peaks, l.now, above, l.t.Cooldown)
	case w.Desired < l.r && w.Desired < s.replicas:
		w.Desired, w.Rule = l.r, RuleBatch
	}
}

// cool adds now to the history of what the load needed, and returns its maximum. Time of
// which nothing is known counts as if the load had needed all there is.
func (l *law) cool(w Why) int {
	n, window := &l.next, l.t.Cooldown
	switch {
	case l.last == nil || l.moved || l.now-l.last.At > undecided.Milliseconds():
		n.Peaks = pushPeak(n.Peaks, l.now, l.r, window)
	case l.f.GapMS != nil && l.now-*l.f.GapMS > l.last.At:
		n.Peaks = pushPeak(n.Peaks, l.now-*l.f.GapMS, l.r, window)
	}
	sample := w.Dnow
	if w.Blind {
		sample = max(sample, l.r)
	}
	if w.Floor > l.r {
		sample = max(sample, w.Floor) // what somebody has started is not undone at once
	}
	if l.last != nil {
		// Between two records the load needed no more than the first says: more would have been recorded.
		n.Peaks = pushPeak(n.Peaks, l.now, l.last.Needed, window)
	}
	n.Needed = sample
	n.Peaks = pushPeak(n.Peaks, l.now, sample, window)
	return n.Peaks[0].N
}

// finish decides whether the plan must be stored, and completes the record.
func (l *law) finish(d *Decision) {
	n, w := &l.next, d.Why
	if l.f.Plan != nil {
		d.IfVersion = l.f.Plan.Version
	}
	if w.Desired < l.r {
		n.Lowered = l.now
	}
	n.InRange = inRangeAfter(n.InRange, l.now, l.r, w.Desired, l.t.StartTimeout)
	n.Why, n.Risks = w, d.Risks
	n.Past = l.past(w)
	d.News = l.newRisks(d.Risks)
	d.Store = l.news(d)
	if !d.Store {
		return
	}
	d.Put.Body = n.write()
}

// news reports whether the next planner needs to know of this decision.
func (l *law) news(d *Decision) bool {
	p := l.f.Plan
	if p == nil || p.Version == 0 || l.last == nil {
		return true
	}
	changed := l.start+l.r != d.Put.Desired || p.Target != d.Put.Target || p.EmptyWhen != d.Put.EmptyWhen ||
		len(d.Put.Seal) > 0 || len(d.Put.Unseal) > 0 || l.next.Ref != l.last.Ref || l.next.Cordoned != l.last.Cordoned ||
		l.next.Needed > l.last.Needed || !maps.Equal(l.next.Metadata, l.last.Metadata) || l.next.Start != l.last.Start ||
		l.next.Hand != nil && (l.last.Hand == nil || l.next.Hand.At > l.last.Hand.At) || !slices.Equal(l.next.Released, l.last.Released)
	return changed || l.now-l.last.At >= recordEvery.Milliseconds()
}
