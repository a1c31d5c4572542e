package adapter_test

import (
	"context"
	"sync"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

// fakeBroker keeps a plan and tells what it is told.
type fakeBroker struct {
	mu    sync.Mutex
	facts brokerapi.PoolFacts
	err   error
}

func (b *fakeBroker) set(edit func(b *fakeBroker)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	edit(b)
}

func (b *fakeBroker) Facts(context.Context, string) (brokerapi.PoolFacts, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.facts, b.err
}

func (b *fakeBroker) PutPlan(_ context.Context, _ string, ifVersion int64, p brokerapi.PutPlan) (brokerapi.Plan, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return brokerapi.Plan{}, b.err
	}
	plan := brokerapi.Plan{Version: ifVersion + 1, Desired: p.Desired, Target: p.Target, EmptyWhen: p.EmptyWhen, Body: p.Body}
	b.facts.Plan = &plan
	return plan, nil
}

func (b *fakeBroker) Drain(context.Context, string, string, brokerapi.DrainRequest) (brokerapi.Drain, error) {
	return brokerapi.Drain{}, nil
}

func (b *fakeBroker) Uncordon(context.Context, string, string, string) error { return nil }
