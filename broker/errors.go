package broker

import (
	"errors"
	"fmt"
	"strings"
)

// The errors of the core. Adapters translate theirs into these at their border.
var (
	ErrRoomNotFound     = errors.New("no such room")
	ErrInstanceNotFound = errors.New("no such instance")
	ErrNoCapacity       = errors.New("no instance can take the room now")
	ErrQueueFull        = errors.New("too many creates are waiting for a place")
	ErrNeverFits        = errors.New("the room can never fit on one instance")
	ErrSettingsDiffer   = errors.New("the room exists with other settings")
	ErrBusy             = errors.New("the room is being made or torn down by another caller")
	ErrStale            = errors.New("the directory has changed meanwhile") // a condition of a write did not hold; nothing was changed
	ErrMarkNotFound     = errors.New("no mark of this owner on the instance")
	ErrReleased         = errors.New("the instance is past its point of no return")
	ErrVersion          = errors.New("the plan has another version")

	// ErrStoreLost: the store does not hold the history that was built on it (no
	// term, or a server whose replication history is another). Call Store.Begin.
	ErrStoreLost = errors.New("the store has lost its content")
	// ErrTerm: the caller's term is over. Call Store.State, then Store.Assert.
	ErrTerm = errors.New("the store has a new term")
	// ErrRebuilding: the directory is being rebuilt from the instances.
	ErrRebuilding = errors.New("the directory is being rebuilt")
	// ErrStoreUnavailable: the store did not answer. Nothing is known of the effect.
	ErrStoreUnavailable = errors.New("the store does not answer")

	// ErrUncertain: a media server did not answer; the request may have taken effect.
	ErrUncertain = errors.New("the instance did not answer; the request may have taken effect")
	// ErrRefused: a media server refused definitely; the request had no effect.
	ErrRefused = errors.New("the instance refused")
)

// FaultError is a failed look or call at an instance, with the remedy. A refusal that says nothing of the
// instance's health (somebody is in the room) has no Fault. Whether the
// call may have taken effect is said by errors.Is(err, ErrUncertain), the
// opposite by errors.Is(err, ErrRefused).
type FaultError struct {
	Fault  Fault
	Advice string // a sentence for an operator; never holds a secret
	Err    error
}

func (e *FaultError) Error() string {
	switch {
	case e.Err == nil:
		return string(e.Fault) + ": " + e.Advice
	case e.Fault == "":
		return e.Err.Error()
	}
	return fmt.Sprintf("%s: %v", e.Fault, e.Err)
}

func (e *FaultError) Unwrap() error { return e.Err }

// RebuildingError is ErrRebuilding with what the rebuild waits for.
type RebuildingError struct {
	Waiting string // instances that have not answered, each with its fault; "" when that is not known
	Err     error
}

func (e *RebuildingError) Error() string {
	if e.Waiting == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("%v: waiting for %s", e.Err, e.Waiting)
}

func (e *RebuildingError) Unwrap() error { return e.Err }

// SealRefusal is why one instance may not be removed.
type SealRefusal struct {
	Instance string
	Ordinal  int
	Why      string // incarnation, mark, pins, missing, floor
	Pins     int
}

// SealError refuses a plan with a lower number; nothing was changed.
type SealError struct{ Refusals []SealRefusal }

func (e *SealError) Error() string {
	var b strings.Builder
	b.WriteString("a lower number would remove instances that may not go")
	for _, r := range e.Refusals {
		fmt.Fprintf(&b, "; %s: %s", r.Instance, r.Why)
	}
	return b.String()
}
