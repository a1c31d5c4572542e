package broker

import (
	"strconv"
	"time"
)

// PoolTime is a moment on a pool's own clock, in milliseconds. See the package
// comment. [Never] stands for "has not happened".
type PoolTime int64

// Never is the PoolTime of what has not happened.
const Never PoolTime = -1

// Since returns the time from t to now, at least 0. It is 0 when t is [Never].
func (now PoolTime) Since(t PoolTime) time.Duration {
	if t == Never || now < t {
		return 0
	}
	return time.Duration(now-t) * time.Millisecond
}

// Epoch numbers claims within a pool; a later claim has a greater one. It stays
// below 2^53 so that it can be a Janus room id in any JSON reader.
type Epoch int64

func (e Epoch) String() string { return strconv.FormatInt(int64(e), 10) }

// PinState says how far a pin has come.
type PinState string

// The states of a pin.
const (
	Creating PinState = "creating" // claimed; the room may or may not be on the instance
	Live     PinState = "live"     // the room has been seen or made on the instance
)

// Pin is one entry of the directory: a room's one home.
type Pin struct {
	Room        string
	Instance    string
	Incarnation string
	Epoch       Epoch
	State       PinState
	Expected    int               // participants the application announced, or the default
	Reserved    int               // of these, still to be reckoned with
	Settings    string            // hash of the room's settings; "" for none
	Labels      map[string]string // the application's own
	Created     PoolTime          // of the claim
	Since       PoolTime          // of the last change of State
	LastSeen    PoolTime          // of the last lookup that counts
	CreatedAt   time.Time         // of the claim, on the store's wall clock; for people only
}

// RoomID is the room's id on its instance. The epoch serves as it: it is unique in
// the pool, so a room made late by a request thought lost never meets its successor.
func (p Pin) RoomID() string { return p.Epoch.String() }
