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
	ref    Ref
	source Source
	first  chan struct{} // closed once the first look has come to an end
	ended  chan struct{} // closed when the planner has ended

	mu      sync.Mutex
	target  Target
	askedAt time.Time
	view    view
	changed chan struct{} // closed when the view's activity changes
	cause   error         // of the last look; nil if it was good
	looked  bool
}

// view is what is known of the stored decision.
type view struct {
	hold    error     // there is no number, and why
	desired int       // as stored
	idle    bool      // it is 0, and everything has been released
	began   time.Time // when the fetch of it began; zero: never
	term    string
	version int64 // of the plan
	why     Why
}

func newPlanner(ref Ref, t Target, source Source) *planner {
	return &planner{ref: ref, source: source, target: t, first: make(chan struct{}), ended: make(chan struct{}), changed: make(chan struct{})}
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
func (p *planner) answer() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.view.hold != nil:
		return 0, p.view.hold
	case p.view.began.IsZero() || time.Since(p.view.began) >= ServeTTL:
		return 0, &unknownError{p.target.Pool, p.cause}
	}
	return p.view.desired, nil
}

// active returns KEDA's activity, and a channel that is closed when it may have changed. Unknown is active.
func (p *planner) active() (bool, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.view.hold == nil && !p.view.began.IsZero() && time.Since(p.view.began) < ServeTTL
	return !(known && p.view.idle), p.changed
}

// publish makes a view the one that is answered from.
func (p *planner) publish(pool string, v view) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.target.Pool != pool {
		return
	}
	if v.idle != p.view.idle {
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
	target, silent := p.asked()
	pool, began := target.Pool, time.Now()
	facts, err := p.source.Facts(ctx, pool)
	if err != nil {
		p.heldBy(pool, err)
		return lookFailed, false, fmt.Errorf("fetch the facts of pool %s: %w", pool, err)
	}
	if p.outdates(facts) {
		return lookFailed, false, fmt.Errorf("fetch the facts of pool %s: the broker told of an older plan than is stored", pool)
	}
	d := Decide(Input{Facts: facts, Ref: p.ref, Target: target, Silent: silent, Refused: *refused})
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
	if facts.Plan != nil && facts.Plan.Version > 0 {
		p.publish(pool, view{desired: facts.Plan.Desired, idle: idle(facts), began: began, term: facts.Term, version: d.IfVersion, why: d.Why})
	}
	p.mark(ctx, log, pool, d)
	if !d.Store {
		return lookUnchanged, false, nil
	}
	began = time.Now()
	plan, err := p.source.PutPlan(ctx, pool, d.IfVersion, d.Put)
	var problem *brokerapi.Problem
	switch {
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
	// The number 0 can be stored only with everything released.
	p.publish(pool, view{desired: plan.Desired, idle: plan.Desired == 0, began: began, term: facts.Term, version: plan.Version, why: d.Why})
	if d.Desired != d.Why.Previous {
		log.Info("number of instances decided", "pool", pool, "desired", plan.Desired, "previous", d.Why.Previous, "why", d.Why.String())
	}
	return lookStored, false, nil
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

// idle reports whether the stored number is 0 and every instance has been released.
func idle(f brokerapi.PoolFacts) bool {
	if f.Plan.Desired != 0 {
		return false
	}
	for i := range f.Instances {
		if s := f.Instances[i].State; s != stateReleased && s != stateLost {
			return false
		}
	}
	return true
}
