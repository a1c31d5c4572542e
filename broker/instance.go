package broker

import "time"

// Owner names who set a mark. An owner's mark is its own: no other owner's call
// changes or removes it.
type Owner string

// The owners of marks.
const (
	OwnerScaler   Owner = "scaler"
	OwnerHook     Owner = "hook"
	OwnerRollout  Owner = "rollout"
	OwnerOperator Owner = "operator"
	OwnerBroker   Owner = "broker"
)

// Owners lists all owners in the order in which they are shown.
var Owners = []Owner{OwnerScaler, OwnerHook, OwnerRollout, OwnerOperator, OwnerBroker}

// Mark is "no new room here", set by one owner on one incarnation.
type Mark struct {
	Owner  Owner
	Reason string
	Since  PoolTime
	Grace  time.Duration // how long its drain may hold; 0 = no deadline
}

// Age returns how long the mark has been there.
func (m Mark) Age(now PoolTime) time.Duration { return now.Since(m.Since) }

// Remaining returns the time to the mark's deadline, at least 0, and whether it has
// a deadline at all.
func (m Mark) Remaining(now PoolTime) (time.Duration, bool) {
	if m.Grace <= 0 {
		return 0, false
	}
	return max(0, m.Grace-m.Age(now)), true
}

// Seal records that an instance's removal has been answered to KEDA.
type Seal struct {
	Version int64    // of the plan that released it
	At      PoolTime // when that plan was stored
}

// Fault says why a look at an instance failed. The zero Fault is none.
type Fault string

// The faults that are told apart, because each has a remedy of its own.
const (
	FaultTimeout         Fault = "timeout"           // no answer in time: hung, overloaded or cut off
	FaultRefused         Fault = "refused"           // nothing listens at the admin address
	FaultUnreachable     Fault = "unreachable"       // no route, no such name, connection broken
	FaultUnauthorized    Fault = "unauthorized"      // wrong admin secret
	FaultAdminOff        Fault = "admin_off"         // a Janus without its admin API there
	FaultPluginMissing   Fault = "plugin_missing"    // no videoroom plugin
	FaultAdminKeyMissing Fault = "admin_key_missing" // private rooms cannot be listed
	FaultAdminKeyWrong   Fault = "admin_key_wrong"   // the plugin wants another admin_key
	FaultOther           Fault = "bad_answer"        // something that is no media server of ours
	FaultStranger        Fault = "other_instance"    // it shows another instance's marker
)

// Instance is what a store remembers of one media server.
type Instance struct {
	Name        string
	Ordinal     int
	Address     string // where its backend is reached
	Incarnation string // "" before the first good look

	// Of the last good look; unknown (see LookBegin) before it.
	Sessions     int
	Participants int
	Rooms        int  // on the server, all of them but the marker
	StringIDs    bool // it wants strings as room ids
	LookBegin    PoolTime
	EmptySince   PoolTime // start of the time it has been empty without a break; Never if it is not

	// Of the directory.
	Pins      int
	Reserved  int // sum of the pins' reservations
	OldestPin PoolTime

	// Of its health.
	FirstSeen  PoolTime // when a finder first listed it
	ListedAt   PoolTime // when a finder last listed it
	LifeSince  PoolTime // when this incarnation was first seen
	Fault      Fault    // of the last look; "" if that was good
	Advice     string   // the remedy for Fault, or a warning
	FaultSince PoolTime // of the first look of the present row of failures
	Failures   int      // length of that row

	Marks    []Mark // sorted by owner
	Seal     *Seal  // nil unless released
	Lost     bool
	Answered bool // in the store's present term
}

// Mark returns the owner's mark and whether there is one.
func (in Instance) Mark(o Owner) (Mark, bool) {
	for _, m := range in.Marks {
		if m.Owner == o {
			return m, true
		}
	}
	return Mark{}, false
}

// Load is what placement reckons with: sessions reported and participants expected.
func (in Instance) Load() int { return in.Sessions + in.Reserved }

// InstanceState is the state that is shown of an instance.
type InstanceState string

// The states of an instance, strongest first.
const (
	StateLost     InstanceState = "lost"     // fenced; will not come back
	StateReleased InstanceState = "released" // its removal has been answered
	StateStarting InstanceState = "starting" // has never answered
	StateSuspect  InstanceState = "suspect"  // has stopped answering
	StateCordoned InstanceState = "cordoned" // marked: no new room
	StateReady    InstanceState = "ready"
)

// State derives the instance's state from what is remembered of it.
func (in Instance) State() InstanceState {
	_, suspect := in.Mark(OwnerBroker)
	switch {
	case in.Lost:
		return StateLost
	case in.Seal != nil:
		return StateReleased
	case in.LookBegin == Never:
		return StateStarting
	case suspect:
		return StateSuspect
	case len(in.Marks) > 0:
		return StateCordoned
	}
	return StateReady
}
