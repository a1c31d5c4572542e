package brokerapi

import (
	"encoding/json"
	"time"
)

// Pin says where a room lives.
type Pin struct {
	Room        string            `json:"room"`
	Instance    string            `json:"instance"`
	Incarnation string            `json:"incarnation"`
	Epoch       int64             `json:"epoch"`
	State       string            `json:"state"` // creating, live
	Address     string            `json:"address"`
	URLs        *URLs             `json:"urls,omitempty"`
	JanusRoom   json.RawMessage   `json:"janus_room"` // a number, or a string where string_ids is set
	PIN         string            `json:"pin"`        // join PIN
	Token       string            `json:"token,omitempty"`
	ICEServers  []ICEServer       `json:"ice_servers,omitempty"`
	CreatedAt   time.Time         `json:"created_at"`
	LastSeen    time.Time         `json:"last_seen"`
	Labels      map[string]string `json:"labels,omitempty"`
}

// URLs are where a client connects to the room's instance.
type URLs struct {
	WS   string `json:"ws,omitempty"`
	HTTP string `json:"http,omitempty"`
}

// ICEServer is a STUN or TURN server for clients (W3C RTCIceServer).
type ICEServer struct {
	URLs       []string `json:"urls"`
	Username   string   `json:"username,omitempty"`
	Credential string   `json:"credential,omitempty"`
}

// CreateRoom is the optional body of PUT …/rooms/{room}.
type CreateRoom struct {
	ExpectedParticipants int               `json:"expected_participants,omitempty"`
	Janus                map[string]any    `json:"janus,omitempty"` // room settings, allow-listed
	Labels               map[string]string `json:"labels,omitempty"`

	// Wait is the parameter of that name: for how long the answer may be held when no instance can take the
	// room now. 0 = not at all; more than 60 s counts as 60 s.
	Wait time.Duration `json:"-"`
}

// Rooms is one page of a list of rooms.
type Rooms struct {
	Rooms  []Pin  `json:"rooms"`
	Cursor string `json:"cursor,omitempty"` // of the next page; absent at the end
}

// Instance is one media server as the broker sees it.
type Instance struct {
	Name         string `json:"name"`
	Ordinal      int    `json:"ordinal"`
	Address      string `json:"address"`
	Incarnation  string `json:"incarnation,omitempty"`
	State        string `json:"state"` // ready, cordoned, released, suspect, starting, lost
	Sessions     *int   `json:"sessions,omitempty"`
	Participants *int   `json:"participants,omitempty"`
	Rooms        *int   `json:"rooms,omitempty"`  // on the server
	AgeMS        *int64 `json:"age_ms,omitempty"` // of these three
	Reserved     int    `json:"reserved"`
	RoomsLeft    int    `json:"rooms_left"`               // pins on it
	OldestRoomMS *int64 `json:"oldest_room_ms,omitempty"` // age of the oldest pin
	EmptyMS      *int64 `json:"empty_ms,omitempty"`       // how long it has been empty without a break; absent: it is not
	KnownMS      int64  `json:"known_ms"`                 // since a finder first listed it
	UnlistedMS   int64  `json:"unlisted_ms"`              // since a finder last listed it
	FailingMS    *int64 `json:"failing_ms,omitempty"`     // since looks began to fail
	Reason       string `json:"reason,omitempty"`         // why it is unhealthy
	Advice       string `json:"advice,omitempty"`         // what to do about it
	Marks        []Mark `json:"marks"`
}

// Mark is "no new room here", set by one owner.
type Mark struct {
	Owner       string `json:"owner"`
	Reason      string `json:"reason,omitempty"`
	AgeMS       int64  `json:"age_ms"`
	RemainingMS *int64 `json:"remaining_ms,omitempty"` // absent: no deadline
}

// Instances is a list of instances.
type Instances struct {
	Instances []Instance `json:"instances"`
}

// DrainRequest is the body of POST …/instances/{instance}/drain.
type DrainRequest struct {
	Owner  string `json:"owner"`
	Reason string `json:"reason,omitempty"`
	Grace  string `json:"grace,omitempty"` // a Go duration; absent: no deadline
}

// The results of a drain.
const (
	DrainEmpty   = "empty"   // no room and nobody left, on fresh data
	DrainExpired = "expired" // the owner's deadline is over and it is not empty
	DrainWaiting = "waiting"
)

// Drain says how far a drain has come.
type Drain struct {
	Result       string `json:"result"`
	Instance     string `json:"instance"`
	Owner        string `json:"owner"`
	RoomsLeft    int    `json:"rooms_left"`
	Sessions     *int   `json:"sessions,omitempty"`
	RemainingMS  *int64 `json:"remaining_ms,omitempty"`
	OldestRoomMS *int64 `json:"oldest_room_ms,omitempty"`
	AgeMS        *int64 `json:"age_ms,omitempty"` // of what is said of sessions
}

// LostRequest is the optional body of POST …/instances/{instance}/lost.
type LostRequest struct {
	Incarnation string `json:"incarnation,omitempty"` // fence only this one
}

// Lost says what the fencing of an incarnation cost.
type Lost struct {
	Instance   string `json:"instance"`
	RoomsEnded int    `json:"rooms_ended"`
}

// The phases of a pool's directory.
const (
	PhaseReady      = "ready"
	PhaseRebuilding = "rebuilding"
)

// PoolFacts is what a scaler needs to know of a pool, at one moment.
type PoolFacts struct {
	Pool      string     `json:"pool"`
	Term      string     `json:"term"`  // of the store
	Phase     string     `json:"phase"` // ready, rebuilding
	NowMS     int64      `json:"now_ms"`
	GapMS     *int64     `json:"gap_ms,omitempty"` // age of the last moment before which nothing was observed
	Floor     int        `json:"floor"`            // least number of the first plan of this term
	Instances []Instance `json:"instances"`
	Queue     Queue      `json:"queue"`
	Plan      *Plan      `json:"plan,omitempty"`
	EmptyWhen string     `json:"empty_when"` // in force at the broker: sessions, rooms
}

// Queue is demand that found no place.
type Queue struct {
	Rooms        int `json:"rooms"`
	Participants int `json:"participants"`
}

// Plan is a stored scaling decision.
type Plan struct {
	Version   int64           `json:"version"`
	Desired   int             `json:"desired"`
	Target    int             `json:"target,omitempty"`
	EmptyWhen string          `json:"empty_when,omitempty"`
	AgeMS     int64           `json:"age_ms"`
	Body      json.RawMessage `json:"body,omitempty"` // the scaler's own
}

// PutPlan is the body of PUT …/plan; its If-Match header carries the version that it
// replaces (0: there is none).
type PutPlan struct {
	Term      string          `json:"term"`
	Desired   int             `json:"desired"`
	Target    int             `json:"target,omitempty"`
	EmptyWhen string          `json:"empty_when,omitempty"`
	Body      json.RawMessage `json:"body,omitempty"`
	Seal      []Seal          `json:"seal,omitempty"`
	Unseal    []string        `json:"unseal,omitempty"`
	GuardMS   int64           `json:"guard_ms,omitempty"` // see broker.PlanUpdate.GuardFor
}

// Seal names an instance that the plan's number takes away.
type Seal struct {
	Instance    string `json:"instance"`
	Incarnation string `json:"incarnation,omitempty"`
	Occupied    bool   `json:"occupied,omitempty"`
}

// The stable codes of problems.
const (
	CodeInvalid             = "invalid"
	CodeUnauthorized        = "unauthorized"
	CodeForbidden           = "forbidden"
	CodeNotFound            = "not_found"
	CodeMethodNotAllowed    = "method_not_allowed"
	CodeTooLarge            = "too_large"
	CodePoolNotFound        = "pool_not_found"
	CodeRoomNotFound        = "room_not_found"
	CodeInstanceNotFound    = "instance_not_found"
	CodeMarkNotFound        = "mark_not_found"
	CodeSettingsDiffer      = "settings_differ"
	CodeNeverFits           = "never_fits"
	CodeNoCapacity          = "no_capacity"
	CodeQueueFull           = "queue_full"
	CodeBusy                = "busy"
	CodeStale               = "stale" // If-Match did not hold
	CodeReleased            = "released"
	CodePlanVersion         = "plan_version"
	CodeSealRefused         = "seal_refused"
	CodeRebuilding          = "directory_rebuilding"
	CodeStoreUnavailable    = "store_unavailable"
	CodeInstanceUnreachable = "instance_unreachable"
	CodeInstanceRefused     = "instance_refused"
	CodeTimeout             = "timeout"   // the broker's own limit; the call may have taken effect
	CodeNotReady            = "not_ready" // of /readyz
	CodeInternal            = "internal"
	CodeUnknown             = "unknown" // made by Client: the answer is not a broker's
)

// Problem is an error answer (RFC 9457, application/problem+json).
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	Code   string `json:"code"`
	Field  string `json:"field,omitempty"` // which part of the request is wrong
	// RetryAfter is the header's value in seconds; 0: none.
	RetryAfter int           `json:"-"`
	Refusals   []SealRefusal `json:"refusals,omitempty"` // of seal_refused
}

func (p *Problem) Error() string {
	if p.Detail != "" {
		return p.Code + ": " + p.Detail
	}
	return p.Code + ": " + p.Title
}

// SealRefusal is why an instance may not be removed now.
type SealRefusal struct {
	Instance string `json:"instance"`
	Ordinal  int    `json:"ordinal"`
	Why      string `json:"why"`
	Rooms    int    `json:"rooms"`
}
