package scaler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

const (
	// lookTimeout bounds one look, so that a broker that hangs is asked again well
	// before the answer ends.
	lookTimeout = 5 * time.Second
	// lookTries is how often a look starts over because somebody else was faster.
	lookTries = 3
)

// outcome says what came of a look.
type outcome string

const (
	lookStored    outcome = "stored"
	lookUnchanged outcome = "unchanged"
	lookHeld      outcome = "held"      // no decision is possible now
	lookContended outcome = "contended" // others were faster each time
	lookFailed    outcome = "failed"
)

// planner observes one pool for one ScaledObject and keeps what may be answered.
type planner struct {
	ref     Ref
	source  Source
	cluster Cluster       // nil: Kubernetes is not read
	first   chan struct{} // closed once the first look has come to an end
	ended   chan struct{} // closed when the planner has ended

	mu      sync.Mutex
	target  Target
	askedAt time.Time
	view    view
	changed chan struct{} // closed when the view's activity changes
	cause   error         // of the last look; nil if it was good
	looked  bool

	owner owner
}

// view is what is known of the stored decision.
type view struct {
	hold    error     // there is no number, and why
	desired int       // as stored
	scale   *scale    // how an answer comes out; nil where Kubernetes is not read
	idle    bool      // it is 0, everything has been released, and nobody waits
	asleep  bool      // it is not idle, and there are no replicas
	began   time.Time // when the fetch of it began; zero: never
	term    string
	version int64 // of the plan
	why     Why
	risks   []Risk
}

func newPlanner(ref Ref, t Target, source Source, cluster Cluster) *planner {
	return &planner{ref: ref, source: source, cluster: cluster, target: t, first: make(chan struct{}), ended: make(chan struct{}), changed: make(chan struct{})}
}

// ask notes a call of KEDA's. What was known of another pool does not count for this one.
func (p *planner) ask(t Target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.Pool != p.target.Pool {
		p.view = view{}
	}
	p.target, p.askedAt = t, time.Now()
}

// asked returns what KEDA last asked for, and how long ago.
func (p *planner) asked() (Target, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.target, time.Since(p.askedAt)
}

// answer returns the number to give to KEDA, or why there is none.
func (p *planner) answer() (float64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.view.hold != nil:
		return 0, p.view.hold
	case p.view.began.IsZero() || time.Since(p.view.began) >= ServeTTL:
		return 0, &unknownError{p.target.Pool, p.cause}
	}
	return p.view.scale.value(p.view.desired)
}

// active returns KEDA's activity, whether nothing runs although it is active, and a channel that is closed when
// that may have changed. Unknown is active.
func (p *planner) active() (active, asleep bool, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.view.hold == nil && !p.view.began.IsZero() && time.Since(p.view.began) < ServeTTL
	return !(known && p.view.idle), known && p.view.asleep, p.changed
}

// publish makes a view the one that is answered from.
func (p *planner) publish(pool string, v view) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.target.Pool != pool {
		return
	}
	if v.idle != p.view.idle || v.asleep != p.view.asleep {
		close(p.changed)
		p.changed = make(chan struct{})
	}
	p.view = v
}

// outdates reports whether the facts are older than what may still be answered.
func (p *planner) outdates(f brokerapi.PoolFacts) bool {
	version := int64(0)
	if f.Plan != nil {
		version = f.Plan.Version
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.view.term == f.Term && version < p.view.version && time.Since(p.view.began) < ServeTTL
}

// done notes how a look ended.
func (p *planner) done(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cause = err
	if !p.looked {
		p.looked = true
		close(p.first)
	}
}

func (p *planner) end() { close(p.ended) }

// look observes the pool, decides, applies the decision and stores it; only then the
// answer changes. When somebody else has been faster, it starts over with what there is then.
func (p *planner) look(ctx context.Context, log *slog.Logger) (outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	var (
		refused []string
		err     error
	)
	for range lookTries {
		var (
			o     outcome
			again bool
		)
		o, again, err = p.try(ctx, log, &refused)
		if !again {
			p.done(err)
			return o, err
		}
	}
	p.done(err)
	return lookContended, err
}

// try is one try of a look. It reports whether another one makes sense at once.
func (p *planner) try(ctx context.Context, log *slog.Logger, refused *[]string) (o outcome, again bool, err error) {
	target, _ := p.asked()
	pool, began := target.Pool, time.Now()
	in := Input{Ref: p.ref, Target: target, Refused: *refused}
	if in.Cluster, err = p.workload(ctx); err != nil {
		// Nobody can say what an answer would lead to.
		p.publish(pool, view{hold: err})
		return lookHeld, false, err
	}
	in.Facts, err = p.source.Facts(ctx, pool)
	if err != nil {
		p.heldBy(pool, err)
		return lookFailed, false, fmt.Errorf("fetch the facts of pool %s: %w", pool, err)
	}
	if p.outdates(in.Facts) {
		return lookFailed, false, fmt.Errorf("fetch the facts of pool %s: the broker told of an older plan than is stored", pool)
	}
	_, in.Silent = p.asked() // the facts have taken their time
	d := p.decide(ctx, &in)
	switch d.Hold {
	case HoldTaken:
		taken := &takenError{pool, d.Owner}
		p.publish(pool, view{hold: taken})
		return lookHeld, false, taken
	case HoldRebuilding:
		rebuilding := &unknownError{pool, errors.New(string(d.Hold))}
		p.publish(pool, view{hold: rebuilding})
		return lookHeld, false, rebuilding
	case HoldNone:
	}
	v := view{
		desired: d.Stored, scale: scaleOf(in.Cluster), idle: idle(in.Facts, d.Stored), began: began, term: in.Facts.Term,
		version: d.IfVersion, why: d.Why, risks: d.Risks,
	}
	v.asleep = !v.idle && in.Cluster != nil && in.Cluster.Replicas == 0
	switch {
	case d.Unfit:
		p.publish(pool, view{hold: &unknownError{pool, errors.New("the first ordinal of the StatefulSet has changed")}})
	case d.IfVersion > 0:
		p.publish(pool, v)
	}
	p.mark(ctx, log, pool, d)
	if !d.Store {
		return lookUnchanged, false, nil
	}
	v.began = time.Now()
	plan, err := p.source.PutPlan(ctx, pool, d.IfVersion, d.Put)
	var problem *brokerapi.Problem
	switch {
	case err == nil && (plan.Version <= d.IfVersion || plan.Desired != d.Put.Desired):
		// Whoever answered that, it is unknown what is stored.
		return lookFailed, false, fmt.Errorf("store a decision for pool %s: the answer tells of plan %d with %d instances, not of the one that was put", pool, plan.Version, plan.Desired)
	case err == nil:
	case errors.As(err, &problem) && problem.Code == brokerapi.CodePlanVersion:
		return lookContended, true, fmt.Errorf("store a decision for pool %s: %w", pool, err)
	case errors.As(err, &problem) && problem.Code == brokerapi.CodeSealRefused:
		for _, r := range problem.Refusals {
			*refused = append(*refused, r.Instance)
		}
		return lookContended, true, fmt.Errorf("store a decision for pool %s: %w", pool, err)
	default:
		p.heldBy(pool, err)
		return lookFailed, false, fmt.Errorf("store a decision for pool %s: %w", pool, err)
	}
	v.desired, v.version = plan.Desired-d.Start, plan.Version
	// The number 0 can be stored only with everything released.
	v.idle = v.desired == 0 && in.Facts.Queue.Rooms == 0 && in.Facts.Queue.Participants == 0
	v.asleep = !v.idle && in.Cluster != nil && in.Cluster.Replicas == 0
	p.publish(pool, v)
	p.tell(log, pool, d)
	return lookStored, false, nil
}

// firstView is how long the very first look waits for Kubernetes to be listed, a fraction at a time.
const (
	firstView  = 800 * time.Millisecond
	viewPeriod = 50 * time.Millisecond
)

// workload returns what Kubernetes says now; nil where it is not read.
func (p *planner) workload(ctx context.Context) (*Workload, error) {
	if p.cluster == nil {
		return nil, nil
	}
	w, err := p.cluster.View(p.ref)
	var refused *RefusedError
	for began := time.Now(); err != nil && !errors.As(err, &refused) && p.isFirst() && time.Since(began) < firstView; w, err = p.cluster.View(p.ref) {
		again := time.NewTimer(viewPeriod)
		select {
		case <-ctx.Done():
			again.Stop()
			return nil, ctx.Err()
		case <-again.C:
		}
	}
	switch {
	case err == nil:
		return &w, nil
	case errors.As(err, &refused):
		return nil, err
	}
	target, _ := p.asked()
	return nil, &unknownError{target.Pool, fmt.Errorf("read ScaledObject %s and what it scales: %w", p.ref, err)}
}

// isFirst reports whether no look has come to an end yet.
func (p *planner) isFirst() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.looked
}

// decide runs the law, and once more when it needs to know what the API server itself says.
func (p *planner) decide(ctx context.Context, in *Input) Decision {
	d := Decide(*in)
	switch {
	case p.cluster == nil:
		return d
	case d.Hold == HoldTaken:
		if in.OwnerGone = p.isGone(ctx, d.Owner); !in.OwnerGone {
			return d
		}
		d = Decide(*in)
	}
	if !d.AskLive {
		return d
	}
	if n, err := p.cluster.Live(ctx, p.ref); err != nil {
		in.LiveErr = err
	} else {
		in.Live = &n
	}
	return Decide(*in)
}

// ownerEvery is how often it is asked whether the ScaledObject that has the pool is still there.
const ownerEvery = 10 * time.Second

// owner is what is known of the ScaledObject that has the pool. Only the planner's own looks use it.
type owner struct {
	ref  Ref
	gone bool
	at   time.Time // when it was asked for
}

// isGone reports whether a ScaledObject is known not to be there. It asks from time to time.
func (p *planner) isGone(ctx context.Context, ref Ref) bool {
	if o := p.owner; o.ref == ref && time.Since(o.at) < ownerEvery {
		return o.gone
	}
	at := time.Now()
	_, err := p.cluster.Live(ctx, ref)
	p.owner = owner{ref, errors.Is(err, ErrNoScaledObject), at}
	return p.owner.gone
}

// heldBy ends the answer at once when the broker says that its directory is being
// rebuilt: what was stored is void. After any other failure the answer stands until its time is over.
func (p *planner) heldBy(pool string, err error) {
	var problem *brokerapi.Problem
	if errors.As(err, &problem) && problem.Code == brokerapi.CodeRebuilding {
		p.publish(pool, view{hold: &unknownError{pool, err}})
	}
}

// mark sets and removes the scaler's marks. One that cannot be set now is tried again by
// the next looks, because decisions rest on the marks that the facts show.
func (p *planner) mark(ctx context.Context, log *slog.Logger, pool string, d Decision) {
	for _, name := range d.Uncordon {
		if err := p.source.Uncordon(ctx, pool, name, ownerScaler); err != nil {
			log.Warn("mark not removed", "pool", pool, "instance", name, "error", err)
		}
	}
	for _, name := range d.Cordon {
		r := brokerapi.DrainRequest{Owner: ownerScaler, Reason: fmt.Sprintf("the load needs %d instances", d.Why.Dcool)}
		if _, err := p.source.Drain(ctx, pool, name, r); err != nil {
			log.Warn("mark not set", "pool", pool, "instance", name, "error", err)
		}
	}
}

// idle reports whether the stored number is 0, every instance has been released, and nobody waits for a place.
func idle(f brokerapi.PoolFacts, stored int) bool {
	if stored != 0 || f.Queue.Rooms > 0 || f.Queue.Participants > 0 {
		return false
	}
	for i := range f.Instances {
		if s := f.Instances[i].State; s != stateReleased && s != stateLost {
			return false
		}
	}
	return true
}
