package broker

import (
	"context"
	"time"
)

// Backend is what the core needs of a kind of media server. It keeps no session of its own
// on the server, so that it adds nothing to the load it reports.
//
// Each call is bounded by its context alone. A failure is a *FaultError that wraps
// ErrRefused when the call certainly had no effect, else ErrUncertain.
type Backend interface {
	// Look reads everything the core reckons with, in a few requests.
	Look(ctx context.Context, at Target, o LookOptions) (Look, error)

	// Plant makes the marker that carries an instance's identity, and returns the incarnation of the
	// marker that stands there after the call: its own, or that of whoever came first.
	Plant(ctx context.Context, at Target, incarnation string) (string, error)

	// Create makes the room. It is idempotent: a room that stands there with this very
	// pool, name and epoch is success; one with the same id and another marker is ErrRefused.
	Create(ctx context.Context, at Target, room RoomSpec) error

	// Destroy ends the room and the sessions of whoever is left in it, viewers included. A room that is not there is
	// success, but only if the server says so. OnlyVacant makes it refuse (ErrRefused) when somebody is in it.
	Destroy(ctx context.Context, at Target, room RoomRef, o DestroyOptions) error

	// Inspect says whether the room is there and who is in it, viewers included.
	Inspect(ctx context.Context, at Target, room RoomRef) (Occupancy, error)
}

// Target is where a call goes.
type Target struct {
	Pool     string
	Instance string
	Address  string
	// StringIDs: the server wants strings as room ids (Look tells).
	StringIDs bool
}

// LookOptions says what else than the cheap facts a look shall tell.
type LookOptions struct {
	// Viewers asks for the handles of every session, to know of people who only watch. It costs a
	// request for each session and each handle.
	Viewers bool
}

// Look is what one look at an instance saw.
type Look struct {
	Marker *InstanceMark // nil: no marker there
	// Sessions counts client sessions as the server reports them.
	Sessions int
	// Rooms are ours, by a marker that verifies; marker rooms and others are not among them.
	Rooms []RoomSeen
	// OtherRooms counts rooms that are not ours, OtherPeople who may send in them.
	OtherRooms, OtherPeople int
	// Handles counts handles in any room; Unknown unless asked for or surely zero.
	Handles int
	// SessionTimeout is the server's: a ghost stays for so long.
	SessionTimeout time.Duration
	StringIDs      bool
	// Complete: no room of ours can have been hidden from this look.
	Complete bool
	// Advice is a warning for the operator (default secret and the like); "" for none.
	Advice string
}

// Unknown is a count that nobody could tell. It is never taken for zero.
const Unknown = -1

// RoomSeen is a room of ours on an instance.
type RoomSeen struct {
	RoomMark
	Publishers int // who may send, whether they do or not
	Viewers    int // Unknown unless asked for or surely zero
}

// Occupancy is who is in one room.
type Occupancy struct {
	Exists     bool
	Publishers int
	Viewers    int
}

// RoomRef names a room on an instance.
type RoomRef struct {
	Room  string
	Epoch Epoch
}

// DestroyOptions tempers Destroy.
type DestroyOptions struct{ OnlyVacant bool }

// RoomSpec is a room to be made.
type RoomSpec struct {
	RoomMark
	// Settings are the application's, already checked against the allow-list of the backend (see
	// SettingsChecker); nil for none.
	Settings map[string]any
}

// SettingsChecker is implemented by a backend that takes room settings. CheckSettings returns *InvalidError for a
// setting it does not take. The keys are as in a request's object of the backend's name.
type SettingsChecker interface {
	CheckSettings(settings map[string]any) error
}

// Finder tells which instances there are now.
type Finder interface {
	// Find returns all of them. An error means that nothing is known; an empty list with a nil
	// error means that there are none.
	Find(ctx context.Context) ([]Found, error)
}

// Found is an instance in a finder's list.
type Found struct {
	Name    string
	Ordinal int
	Address string
	// NodeDown: the machine under it is known not to be in order. Long enough, and without an answer of the
	// instance, this ends its life; a finder that does not know says false.
	NodeDown bool
}
