package httpapi

import (
	"slices"
	"strings"

	"github.com/roomscaler/roomscaler/broker"
)

// Scope says what a token is good for.
type Scope string

// The scopes.
const (
	ScopeApplication Scope = "application" // rooms
	ScopeInstance    Scope = "instance"    // a drain hook: marks of owner hook
	ScopeScaler      Scope = "scaler"      // facts, plan, marks of owner scaler
	ScopeOperator    Scope = "operator"    // everything; marks of owner operator or rollout
	ScopeMetrics     Scope = "metrics"     // /metrics
)

var scopes = []Scope{ScopeApplication, ScopeInstance, ScopeScaler, ScopeOperator, ScopeMetrics}

// principal is who calls.
type principal struct {
	open  bool // no tokens are in use
	scope Scope
	pool  string // "" = any
}

func (p principal) mayCall(rt route, pool string) error {
	switch {
	case p.open:
		return nil
	case p.scope != ScopeOperator && !slices.Contains(rt.scopes, p.scope):
		need := []string{}
		for _, s := range rt.scopes {
			need = append(need, string(s))
		}
		if !slices.Contains(rt.scopes, ScopeOperator) {
			need = append(need, string(ScopeOperator))
		}
		return &detailError{"this call needs a token of scope " + strings.Join(need, " or ") + "; this one has " + string(p.scope), errForbidden}
	case p.pool != "" && pool != "" && p.pool != pool:
		return &detailError{"this token is good for pool " + p.pool + " only", errForbidden}
	}
	return nil
}

// owner returns the owner of the marks that the caller may set and remove. The scope
// fixes it, whatever is named; an operator may name one of two.
func (p principal) owner(named string) (broker.Owner, error) {
	o := broker.Owner(named)
	if named != "" && (o == broker.OwnerBroker || !slices.Contains(broker.Owners, o)) {
		return "", invalid("owner", "no such owner; there are scaler, hook, rollout, operator")
	}
	mine := p.owners()
	switch {
	case named == "" && p.open:
		return "", invalid("owner", "is missing; give scaler, hook, rollout or operator")
	case named == "":
		return mine[0], nil
	case !slices.Contains(mine, o):
		return "", &detailError{"a token of scope " + string(p.scope) + " has marks of owner " + string(mine[0]) + " only", errForbidden}
	}
	return o, nil
}

// ownerToRead is owner, except that an operator may read of every owner's drain.
func (p principal) ownerToRead(named string) (broker.Owner, error) {
	if o := broker.Owner(named); p.scope == ScopeOperator && slices.Contains(broker.Owners, o) {
		return o, nil
	}
	return p.owner(named)
}

// ownerToRemove is owner, except that an operator may remove every mark but the broker's: the hook of a pod
// that is gone cannot take its own away.
func (p principal) ownerToRemove(named string) (broker.Owner, error) {
	if broker.Owner(named) == broker.OwnerBroker {
		return p.owner(named)
	}
	return p.ownerToRead(named)
}

func (p principal) owners() []broker.Owner {
	switch {
	case p.open:
		return []broker.Owner{broker.OwnerOperator, broker.OwnerRollout, broker.OwnerHook, broker.OwnerScaler}
	case p.scope == ScopeInstance:
		return []broker.Owner{broker.OwnerHook}
	case p.scope == ScopeScaler:
		return []broker.Owner{broker.OwnerScaler}
	}
	return []broker.Owner{broker.OwnerOperator, broker.OwnerRollout}
}
