package scaler_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

var errGone = errors.New("connection refused")

// fakeBroker is a Source that keeps the contract of a plan and can hang, fail and be
// slow. Its clock is that of the test's bubble.
type fakeBroker struct {
	mu     sync.Mutex
	start  time.Time
	planAt time.Time
	facts  brokerapi.PoolFacts

	// before is called, without lock, at the start of each call; an error is the call's answer. The names of
	// calls are facts, put, drain and uncordon.
	before func(ctx context.Context, call string) error

	calls   []string
	stored  []int // every number that was stored, in order
	refused int   // plans with another version
}

func newFakeBroker(f brokerapi.PoolFacts) *fakeBroker {
	return &fakeBroker{start: time.Now(), planAt: time.Now(), facts: f}
}

func (b *fakeBroker) set(edit func(b *fakeBroker)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	edit(b)
}

// count returns how often a call has been made.
func (b *fakeBroker) count(call string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, c := range b.calls {
		if c == call {
			n++
		}
	}
	return n
}

func (b *fakeBroker) enter(ctx context.Context, call string) error {
	b.mu.Lock()
	before := b.before
	b.calls = append(b.calls, call)
	b.mu.Unlock()
	if before != nil {
		return before(ctx, call)
	}
	return nil
}

func (b *fakeBroker) Facts(ctx context.Context, pool string) (brokerapi.PoolFacts, error) {
	if err := b.enter(ctx, "facts"); err != nil {
		return brokerapi.PoolFacts{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.facts
	f.Pool, f.NowMS = pool, now+time.Since(b.start).Milliseconds()
	f.Instances = slices.Clone(f.Instances)
	if f.Plan != nil {
		p := *f.Plan
		p.AgeMS = time.Since(b.planAt).Milliseconds()
		f.Plan = &p
	}
	return f, nil
}

func (b *fakeBroker) PutPlan(ctx context.Context, _ string, ifVersion int64, p brokerapi.PutPlan) (brokerapi.Plan, error) {
	if err := b.enter(ctx, "put"); err != nil {
		return brokerapi.Plan{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	version := int64(0)
	if b.facts.Plan != nil {
		version = b.facts.Plan.Version
	}
	if version != ifVersion {
		b.refused++
		return brokerapi.Plan{}, &brokerapi.Problem{Code: brokerapi.CodePlanVersion, Title: "the plan has another version", Status: 412}
	}
	for i := range b.facts.Instances {
		in := &b.facts.Instances[i]
		if slices.ContainsFunc(p.Seal, func(s brokerapi.Seal) bool { return s.Instance == in.Name }) {
			in.State = "released"
		}
	}
	plan := brokerapi.Plan{Version: version + 1, Desired: p.Desired, Target: p.Target, EmptyWhen: p.EmptyWhen, Body: p.Body}
	b.facts.Plan, b.planAt = &plan, time.Now()
	b.stored = append(b.stored, p.Desired)
	return plan, nil
}

func (b *fakeBroker) Drain(ctx context.Context, _, instance string, r brokerapi.DrainRequest) (brokerapi.Drain, error) {
	if err := b.enter(ctx, "drain"); err != nil {
		return brokerapi.Drain{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.facts.Instances {
		if b.facts.Instances[i].Name == instance {
			b.facts.Instances[i] = marked(b.facts.Instances[i], r.Owner, 0, nil)
		}
	}
	return brokerapi.Drain{Result: brokerapi.DrainWaiting, Instance: instance, Owner: r.Owner}, nil
}

func (b *fakeBroker) Uncordon(ctx context.Context, _, instance, owner string) error {
	if err := b.enter(ctx, "uncordon"); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.facts.Instances {
		in := &b.facts.Instances[i]
		if in.Name == instance {
			in.State = "ready"
			in.Marks = slices.DeleteFunc(slices.Clone(in.Marks), func(m brokerapi.Mark) bool { return m.Owner == owner })
		}
	}
	return nil
}
