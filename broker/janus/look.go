package janus

import (
	"context"
	"strings"

	"github.com/roomscaler/roomscaler/broker"
)

// Look asks for the sessions, the rooms and, once in a while, for what cannot change in one life.
func (b *Backend) Look(ctx context.Context, at broker.Target, o broker.LookOptions) (broker.Look, error) {
	sessions, err := b.sessions(ctx, at.Address)
	if err != nil {
		return broker.Look{}, err
	}
	rooms, known, err := b.lookRooms(ctx, at)
	if err != nil {
		return broker.Look{}, err
	}
	look := broker.Look{
		Sessions:       len(sessions),
		Handles:        broker.Unknown,
		SessionTimeout: known.timeout,
		Complete:       !known.hidden,
	}
	if look.StringIDs, err = b.stringIDs(ctx, at.Address, rooms); err != nil {
		return broker.Look{}, err
	}
	var advice []string
	var members []member
	counted := len(sessions) == 0
	if o.Viewers && !counted {
		if members, err = b.scan(ctx, at.Address, sessions); err != nil {
			advice = append(advice, "the handles could not be read, so nobody knows who only watches")
		}
		counted = err == nil
	}
	if counted {
		look.Handles = len(members)
	}
	b.sort(&look, at, rooms, viewersByRoom(members), counted)
	if b.secrets.Load().admin == DefaultSecret {
		advice = append(advice, adviceOverlord)
	}
	if known.hidden {
		advice = append(advice, adviceHidden)
	}
	if b.adminKey() != "" && !known.keyed {
		advice = append(advice, advicePublic)
	}
	look.Advice = strings.Join(advice, "; ")
	return look, nil
}

// lookRooms lists the rooms with whatever shows all of them, and returns what is known of this life.
func (b *Backend) lookRooms(ctx context.Context, at broker.Target) ([]listedRoom, life, error) {
	known, fresh := b.lives.take(at.Address)
	rooms, now, err := b.lookAs(ctx, at, known, fresh)
	if err != nil && known.private {
		b.lives.madePrivate(at.Address)
	}
	return rooms, now, err
}

func (b *Backend) lookAs(ctx context.Context, at broker.Target, known life, fresh bool) ([]listedRoom, life, error) {
	if key := b.adminKey(); fresh && known.keyed && key != "" {
		rooms, err := b.rooms(ctx, at.Address, key)
		if err != nil {
			return nil, life{}, err
		}
		if m := b.marker(rooms); m != nil && m.Incarnation == known.incarnation {
			return rooms, known, nil
		}
		fresh = false
	}
	rooms, keyed, err := b.probe(ctx, at.Address)
	if err != nil {
		return nil, life{}, err
	}
	found := life{keyed: keyed, timeout: known.timeout}
	if m := b.marker(rooms); m != nil {
		found.incarnation = m.Incarnation
	}
	if fresh && found.incarnation != "" && found.incarnation == known.incarnation && found.keyed == known.keyed {
		return rooms, known, nil
	}
	if found.timeout, err = b.sessionTimeout(ctx, at.Address); err != nil {
		return nil, life{}, err
	}
	return rooms, b.lives.learn(at.Address, found, known.private), nil
}

// probe lists the rooms and tells whether the videoroom has an admin_key: one that has none takes any.
func (b *Backend) probe(ctx context.Context, address string) (rooms []listedRoom, keyed bool, err error) {
	rooms, err = b.rooms(ctx, address, b.probeKey)
	if !isCode(err, roomUnauthorized) {
		return rooms, false, err
	}
	key := b.adminKey()
	if key == "" {
		return nil, true, refused(broker.FaultAdminKeyMissing, adviceNoKey, errNoKey)
	}
	rooms, err = b.rooms(ctx, address, key)
	return rooms, true, err
}

// marker finds the instance's marker among the rooms; nil when there is none that this room key sealed.
func (b *Backend) marker(rooms []listedRoom) *broker.InstanceMark {
	for _, r := range rooms {
		if *r.ID != markerID(r.ID.strings) {
			continue
		}
		if m, ok := b.key.ReadInstance(r.Description); ok {
			return &m
		}
	}
	return nil
}

// stringIDs tells which kind of ids the videoroom takes: by a room that is there, else by asking for one by number.
func (b *Backend) stringIDs(ctx context.Context, address string, rooms []listedRoom) (bool, error) {
	if len(rooms) > 0 {
		return rooms[0].ID.strings, nil
	}
	_, err := b.exists(ctx, address, roomID{text: "1"})
	if isCode(err, roomElementType) {
		return true, nil
	}
	return false, err
}

// sort tells our rooms from others. Ours has a description that this room key sealed for this pool and that names the
// epoch which is its id: anybody may copy a description that is listed into a room of his own.
func (b *Backend) sort(look *broker.Look, at broker.Target, rooms []listedRoom, viewers map[roomID]int, counted bool) {
	for _, r := range rooms {
		if *r.ID == markerID(r.ID.strings) {
			if m, ok := b.key.ReadInstance(r.Description); ok {
				look.Marker = &m
				continue
			}
		}
		m, ok := b.key.ReadRoom(r.Description)
		if !ok || m.Pool != at.Pool || m.Epoch.String() != r.ID.text {
			look.OtherRooms++
			look.OtherPeople += r.publishers()
			continue
		}
		seen := broker.RoomSeen{RoomMark: m, Publishers: r.publishers(), Viewers: broker.Unknown}
		if counted {
			seen.Viewers = viewers[*r.ID]
		}
		look.Rooms = append(look.Rooms, seen)
	}
}

func viewersByRoom(members []member) map[roomID]int {
	n := map[roomID]int{}
	for _, m := range members {
		if m.viewer {
			n[m.room]++
		}
	}
	return n
}
