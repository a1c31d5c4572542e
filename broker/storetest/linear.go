package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/roomscaler/roomscaler/broker"
)

// The size of one history: enough for every race of two and small enough to be
// searched in no time.
const (
	linearClients    = 4
	linearOperations = 12
	linearRooms      = 3
	linearInstances  = 3
	linearHard       = 4 // participants an instance takes
)

// Linearizable runs concurrent claims, confirmations, ends, marks, plans and lookups
// against a fresh store for each seed from 1 to seeds, and fails when what they
// answered is not the effect of some order of them.
func Linearizable(t *testing.T, open Opener, seeds int) {
	t.Helper()
	for seed := range seeds {
		history := record(t, open(t), uint64(seed+1))
		switch judge(history) {
		case porcupine.Ok:
		case porcupine.Illegal:
			t.Errorf("seed %d: no order of these calls explains their answers:\n%s", seed+1, describe(history))
			return
		case porcupine.Unknown:
			t.Errorf("seed %d: the search for an order took too long", seed+1)
		}
	}
}

func judge(history []porcupine.Operation) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(directoryModel(), history, time.Minute)
}

// record runs one history. Each client does what the seed says; how the clients
// interleave is for the scheduler.
func record(t *testing.T, s Subject, seed uint64) []porcupine.Operation {
	t.Helper()
	k := &kit{Subject: s, t: t, ctx: t.Context()}
	k.ready(linearInstances)
	k.plan(linearInstances)

	var (
		clock   atomic.Int64
		start   = make(chan struct{})
		clients sync.WaitGroup
		parts   = make([][]porcupine.Operation, linearClients)
	)
	for id := range linearClients {
		clients.Go(func() {
			c := client{store: s.Store, term: k.term, version: 1, rand: rand.New(rand.NewPCG(seed, uint64(id)))}
			<-start
			for range linearOperations {
				in := c.next()
				op := porcupine.Operation{ClientId: id, Input: in, Call: clock.Add(1)}
				out, err := c.do(k.ctx, in)
				op.Return = clock.Add(1)
				op.Output = out
				if err != nil {
					t.Errorf("%v: %v", in, err)
					return
				}
				parts[id] = append(parts[id], op)
				runtime.Gosched()
			}
		})
	}
	close(start)
	clients.Wait()
	var history []porcupine.Operation
	for _, p := range parts {
		history = append(history, p...)
	}
	return history
}

// client is one of those that work on a store at the same time. It remembers what it
// has seen, as a broker does, so that its conditions hold often enough.
type client struct {
	store   broker.Store
	term    broker.Term
	rand    *rand.Rand
	seen    [linearRooms]broker.Epoch
	version int64
}

// next chooses a call.
func (c *client) next() call {
	in := call{
		Room: c.rand.IntN(linearRooms), Instance: c.rand.IntN(linearInstances),
		Owner: []broker.Owner{broker.OwnerScaler, broker.OwnerHook}[c.rand.IntN(2)],
	}
	in.Kind = []kind{
		doClaim, doClaim, doClaim, doClaim, doConfirm, doConfirm, doRefused, doTeardown, doExpire,
		doMark, doMark, doUnmark, doUnmark, doPlan, doPlan, doLookup, doLookup, doFacts,
	}[c.rand.IntN(18)]
	in.Epoch = c.seen[in.Room]
	switch in.Kind {
	case doClaim:
		in.Expected = 1 + c.rand.IntN(2)
	case doPlan:
		in.Version, in.Desired = c.version, 1+c.rand.IntN(linearInstances)
	}
	return in
}

// do makes the call and says what came of it. The error is one that no order explains.
func (c *client) do(ctx context.Context, in call) (answer, error) {
	room := fmt.Sprint("room-", in.Room)
	var pin broker.Pin
	var err error
	switch in.Kind {
	case doClaim:
		var fresh bool
		pin, fresh, err = c.store.Claim(ctx, c.term, broker.ClaimRequest{
			Room: room, Expected: in.Expected, Pick: broker.PickLeast, Hard: linearHard, Candidates: all(linearInstances),
		})
		return c.pinned(in, pin, fresh, err)
	case doConfirm:
		pin, err = c.store.Confirm(ctx, c.term, room, in.Epoch)
		return c.pinned(in, pin, false, err)
	case doLookup:
		pin, _, err = c.store.Lookup(ctx, room, true)
		return c.pinned(in, pin, false, err)
	case doRefused, doTeardown, doExpire:
		cause := map[kind]broker.Cause{doRefused: broker.CauseRefused, doTeardown: broker.CauseTeardown, doExpire: broker.CauseExpired}[in.Kind]
		pin, err = c.store.End(ctx, c.term, broker.EndRequest{Room: room, Epoch: in.Epoch, Cause: cause, TTL: -time.Second})
		return c.pinned(in, pin, false, err)
	case doMark:
		_, err = c.store.Mark(ctx, c.term, name(in.Instance), broker.MarkRequest{Owner: in.Owner})
		return c.pinned(in, pin, false, err)
	case doUnmark:
		_, err = c.store.Unmark(ctx, c.term, name(in.Instance), in.Owner)
		return c.pinned(in, pin, false, err)
	case doPlan:
		return c.plan(ctx, in)
	}
	return c.facts(ctx)
}

func (c *client) pinned(in call, p broker.Pin, fresh bool, err error) (answer, error) {
	code, err := outcome(err)
	out := answer{Code: code, Fresh: fresh, Epoch: p.Epoch}
	if p.Instance != "" {
		out.Instance, _ = broker.OrdinalOf(p.Instance)
		c.seen[in.Room] = p.Epoch
	}
	return out, err
}

// plan lowers or raises the number, naming all that has to go and come back.
func (c *client) plan(ctx context.Context, in call) (answer, error) {
	u := broker.PlanUpdate{IfVersion: in.Version, Desired: in.Desired}
	for i := range linearInstances {
		if i >= in.Desired {
			u.Seal = append(u.Seal, seal(i))
		} else {
			u.Unseal = append(u.Unseal, name(i))
		}
	}
	p, err := c.store.PutPlan(ctx, c.term, u)
	code, err := outcome(err)
	if code == "version" {
		f, readErr := c.store.Facts(ctx) // learnt beside the history
		c.version, err = f.Plan.Version, readErr
	} else if p.Version != 0 {
		c.version = p.Version
	}
	return answer{Code: code, Version: p.Version}, err
}

func (c *client) facts(ctx context.Context) (answer, error) {
	f, err := c.store.Facts(ctx)
	out := answer{Version: f.Plan.Version, Desired: f.Plan.Desired}
	for i, in := range f.Instances {
		h := &out.Homes[i]
		h.Pins, h.Reserved, h.Sealed = in.Pins, in.Reserved, in.Seal != nil
		_, h.Scaler = in.Mark(broker.OwnerScaler)
		_, h.Hook = in.Mark(broker.OwnerHook)
	}
	c.version = f.Plan.Version
	return out, err
}

func describe(history []porcupine.Operation) string {
	out := ""
	for _, op := range history {
		out += fmt.Sprintf("client %d [%d-%d] %+v -> %+v\n", op.ClientId, op.Call, op.Return, op.Input, op.Output)
	}
	return out
}
