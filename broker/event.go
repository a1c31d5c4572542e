package broker

// EventKind says what happened.
type EventKind string

// The events of the core. The edges log and count them.
const (
	RoomEnded         EventKind = "room_ended"         // a pin ended by other than its teardown; Detail: the cause
	RoomAdopted       EventKind = "room_adopted"       // a room on an instance was entered in the directory
	RoomConflict      EventKind = "room_conflict"      // a room with people contradicts the directory; nothing was done
	RoomDestroyed     EventKind = "room_destroyed"     // a room without a pin and without people was destroyed
	TeardownOwed      EventKind = "teardown_owed"      // a torn-down room could not be destroyed yet; the sweep will
	InstanceFault     EventKind = "instance_fault"     // a look failed, otherwise than the one before; Detail: fault and advice
	InstanceAnswers   EventKind = "instance_answers"   // a look is good after one that failed
	InstanceSuspect   EventKind = "instance_suspect"   // it stopped answering; Detail: fault and advice
	InstanceRecovered EventKind = "instance_recovered" // it answers again
	InstanceReborn    EventKind = "instance_reborn"    // a new life was found; Detail: rooms that ended with the old one
	InstanceLost      EventKind = "instance_lost"      // fenced; Detail: rooms that ended
	InstanceForgotten EventKind = "instance_forgotten" // gone for good, and nothing was on it
	FinderEmpty       EventKind = "finder_empty"       // the finder lists no instance at all
	RebuildBegun      EventKind = "rebuild_begun"      // the store has lost its content
	RebuildDone       EventKind = "rebuild_done"
)

// Event is something that an operator may want to know.
type Event struct {
	Kind     EventKind
	Pool     string
	Instance string
	Room     string
	Epoch    Epoch
	Detail   string
}
