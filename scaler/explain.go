package scaler

import "fmt"

// Rule names the step of the law that decided.
type Rule string

// The rules.
const (
	RuleRise     Rule = "rise"     // the load needs more instances
	RuleAdopt    Rule = "adopt"    // instances stand above the number that nobody has released
	RuleSteady   Rule = "steady"   // the number is what the load needs
	RuleCooldown Rule = "cooldown" // the load needs fewer, but not for long enough
	RuleFloor    Rule = "floor"    // fewer are needed, but the highest may not go
	RuleMaximum  Rule = "maximum"  // the load needs more than may be
	RuleLower    Rule = "lower"    // the highest are released
	RuleBeyond   Rule = "beyond"   // the load needs more, and the autoscaler's tolerance lets only a larger step through
	RuleBatch    Rule = "batch"    // the highest may go, but too few for a step that the autoscaler's tolerance lets through
	RuleUnread   Rule = "unread"   // the highest may go, but spec.replicas could not be confirmed
)

// Why holds every step of the law, so that a number can be explained.
type Why struct {
	Rule        Rule   `json:"rule"`
	Previous    int    `json:"previous"`     // R: the stored number before
	PerInstance int    `json:"per_instance"` // T
	Load        int    `json:"load"`         // N, reservations included
	Queued      int    `json:"queued"`       // q
	Spare       int    `json:"spare"`        // H
	Unknown     int    `json:"unknown"`      // instances without fresh data
	Replaced    int    `json:"replaced"`     // broken ordinals that are made up for
	Coming      int    `json:"coming"`       // ordinals that count although nothing answers there yet
	Blind       bool   `json:"blind,omitempty"`
	Dload       int    `json:"d_load"`
	Dslot       int    `json:"d_slot"`
	Dnow        int    `json:"d_now"`
	Dcool       int    `json:"d_cool"`
	Floor       int    `json:"floor"` // F
	FloorBy     string `json:"floor_by,omitempty"`
	FloorWhy    string `json:"floor_why,omitempty"`
	Minimum     int    `json:"minimum"`
	Maximum     int    `json:"maximum"`
	Desired     int    `json:"desired"`
	Fits        int    `json:"fits"` // how many more sessions may come before the load needs more
}

func (w Why) String() string {
	s := fmt.Sprintf("%d -> %d by %s: load %d + queued %d + spare %d at %d each need %d (capacity) and %d (free slots), now %d, cool-down %d, floor %d, bounds %d to %d",
		w.Previous, w.Desired, w.Rule, w.Load, w.Queued, w.Spare, w.PerInstance, w.Dload, w.Dslot, w.Dnow, w.Dcool, w.Floor, w.Minimum, w.Maximum)
	if w.FloorBy != "" {
		s += fmt.Sprintf(" (%s: %s)", w.FloorBy, w.FloorWhy)
	}
	return s
}

// Risk is something an operator ought to know of a decision.
type Risk struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// The codes of risks.
const (
	RiskMaximum = "at_maximum"      // the load needs more instances than may be
	RiskAbove   = "above_maximum"   // more instances are in use than may be; Kubernetes may cut them off
	RiskBlind   = "blind"           // no instance in range has fresh data
	RiskBroken  = "broken"          // instances are missing or do not answer, and are made up for
	RiskGrace   = "grace_expired"   // an instance is let go with rooms on it
	RiskRecord  = "record_unusable" // the history could not be read and starts anew
	RiskRefused = "seal_refused"    // the store would not release an instance
	RiskLive    = "live_unreadable" // spec.replicas could not be confirmed: nothing is lowered, no release ends
	RiskHand    = "changed_past"    // spec.replicas was changed past the scaler
	RiskEnded   = "ended_past"      // an instance with rooms on it was taken away past the scaler
	RiskBounds  = "bounds_twice"    // minInstances and maxInstances are given beside the ScaledObject's bounds
	RiskStart   = "start_changed"   // spec.ordinals.start was changed: the lowest or the highest ordinals are ended
	RiskBand    = "tolerance"       // the autoscaler's tolerance is not 0: numbers near the present one cannot be reached
)

// The codes of risks that lie in the configuration (Workload.Settings).
const (
	RiskPaused       = "paused"            // the ScaledObject is paused: nothing is scaled
	RiskPausedAt     = "paused_replicas"   // it is paused at a number, whatever runs there
	RiskRestore      = "restore_replicas"  // its deletion sets an old number, whatever runs there
	RiskFallback     = "fallback"          // errors are answered by a number that knows of no rooms
	RiskIdle         = "idle_replicas"     // KEDA sets that number by itself
	RiskZero         = "scale_to_zero"     // KEDA may set 0 by itself
	RiskTriggers     = "several_triggers"  // another trigger has a say
	RiskModifiers    = "scaling_modifiers" // a formula changes the number
	RiskCached       = "cached_metrics"    // the autoscaler may be fed an old number
	RiskMetricType   = "metric_type"       // only AverageValue leads to the number that is answered
	RiskOrderedReady = "ordered_ready"     // one pod that is not ready blocks scaling
	RiskRolling      = "rolling_update"    // an update ends pods whatever runs there
	RiskNoHPA        = "no_autoscaler"     // KEDA has made no autoscaler
)
