package scaler

import (
	"context"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

// Source is what the scaler needs of a broker. A refusal is a *brokerapi.Problem, possibly wrapped; any
// other error means that the effect is unknown. Every call ends when its context does.
type Source interface {
	// Facts returns all there is to know of the pool, at one moment.
	Facts(ctx context.Context, pool string) (brokerapi.PoolFacts, error)

	// PutPlan stores a decision if the plan still has the version (0: there is none): else
	// plan_version. A lower number that would take away an instance that may not go is seal_refused.
	PutPlan(ctx context.Context, pool string, ifVersion int64, p brokerapi.PutPlan) (brokerapi.Plan, error)

	// Drain sets or repeats the scaler's mark.
	Drain(ctx context.Context, pool, instance string, r brokerapi.DrainRequest) (brokerapi.Drain, error)

	// Uncordon removes the owner's mark; released when it is too late for that.
	Uncordon(ctx context.Context, pool, instance, owner string) error
}

// The owners of marks, as the broker names them.
const (
	ownerScaler = "scaler"
	ownerBroker = "broker"
)

// The states of an instance that the law tells apart.
const (
	stateReleased = "released"
	stateLost     = "lost"
)
