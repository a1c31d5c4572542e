package httpapi

import (
	"context"
	"fmt"
	"time"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

func getPool(ctx context.Context, _ *Handler, c *call) (answer, error) {
	f, err := c.pool().Facts(ctx)
	if err != nil {
		return answer{}, err
	}
	out := brokerapi.PoolFacts{
		Pool: c.names["pool"], Term: string(f.Term), Phase: string(f.Phase), NowMS: int64(f.Now), GapMS: age(f.Gap, f.Now), Floor: f.Floor,
		Instances: instances(f.Instances, f.Now),
		Queue:     brokerapi.Queue{Rooms: f.Demand.Rooms, Participants: f.Demand.Participants},
		EmptyWhen: string(c.pool().EmptyWhen(f)),
	}
	if f.Plan.Version > 0 {
		p := plan(f.Plan, f.Now)
		out.Plan = &p
	}
	return answer{body: out}, nil
}

// maxGuard bounds how long a raised number may hold new rooms below the one before.
const maxGuard = time.Hour

func putPlan(ctx context.Context, _ *Handler, c *call) (answer, error) {
	version, given, err := ifMatch(c.header)
	if err == nil && !given {
		err = invalid("If-Match", `is missing; give the version of the plan that is replaced, "0" for none`)
	}
	if err != nil {
		return answer{}, err
	}
	var in brokerapi.PutPlan
	if err := decode(c.body, &in); err != nil {
		return answer{}, err
	}
	if err := checkPlan(in); err != nil {
		return answer{}, err
	}
	u := broker.PlanUpdate{
		IfVersion: version, Desired: in.Desired, Target: in.Target, EmptyWhen: in.EmptyWhen, Body: in.Body,
		Unseal: in.Unseal, GuardFor: time.Duration(in.GuardMS) * time.Millisecond,
	}
	for _, s := range in.Seal {
		u.Seal = append(u.Seal, broker.SealRequest{Instance: s.Instance, Incarnation: s.Incarnation, Occupied: s.Occupied})
	}
	p, err := c.pool().PutPlan(ctx, broker.Term(in.Term), u)
	if err != nil {
		return answer{}, err
	}
	return answer{body: plan(p, p.StoredAt)}, nil
}

func checkPlan(in brokerapi.PutPlan) error {
	switch {
	case in.Term == "":
		return invalid("term", "is empty; give the term of the facts that were decided on")
	case in.Desired < 0 || in.Desired > broker.MaxOrdinal+1:
		return invalid("desired", fmt.Sprintf("give a number from 0 to %d", broker.MaxOrdinal+1))
	case in.Target < 0:
		return invalid("target", "give a number from 0; 0 leaves it to the broker's flag")
	case in.EmptyWhen != "" && in.EmptyWhen != "sessions" && in.EmptyWhen != "rooms":
		return invalid("empty_when", "give sessions or rooms, or leave it out")
	case in.GuardMS < 0 || in.GuardMS > maxGuard.Milliseconds():
		return invalid("guard_ms", fmt.Sprintf("give a number from 0 to %d", maxGuard.Milliseconds()))
	}
	for _, s := range in.Seal {
		if err := broker.CheckInstance(s.Instance); err != nil {
			return invalid("seal[].instance", "is no name of an instance")
		}
	}
	for _, name := range in.Unseal {
		if err := broker.CheckInstance(name); err != nil {
			return invalid("unseal[]", "is no name of an instance")
		}
	}
	return nil
}
