package memstore

import (
	"slices"

	"github.com/roomscaler/roomscaler/broker"
)

// tombs are the ended rooms, by instance and by room, and in the order of their end.
type tombs struct {
	byInstance map[string][]broker.Tombstone
	byRoom     map[string][]broker.Tombstone
	line       []buried
}

type buried struct {
	instance string
	stone    broker.Tombstone
}

func newTombs() tombs {
	return tombs{byInstance: map[string][]broker.Tombstone{}, byRoom: map[string][]broker.Tombstone{}}
}

func (t *tombs) add(instance string, stone broker.Tombstone) {
	t.forget(stone.Ended)
	t.byInstance[instance] = append(t.byInstance[instance], stone)
	t.byRoom[stone.Room] = append(t.byRoom[stone.Room], stone)
	t.line = append(t.line, buried{instance, stone})
}

// forget drops what ended longer ago than TombstoneTTL. All three lists are in the
// order of the end, so the oldest of the line is the first of its others.
func (t *tombs) forget(now broker.PoolTime) {
	n := 0
	for ; n < len(t.line) && now.Since(t.line[n].stone.Ended) > broker.TombstoneTTL; n++ {
		dropFirst(t.byInstance, t.line[n].instance)
		dropFirst(t.byRoom, t.line[n].stone.Room)
	}
	t.line = t.line[n:]
}

func dropFirst(m map[string][]broker.Tombstone, key string) {
	if rest := m[key][1:]; len(rest) > 0 {
		m[key] = rest
		return
	}
	delete(m, key)
}

// stands reports whether a tombstone of this or a later epoch stands against a room.
func (t *tombs) stands(room string, epoch broker.Epoch, now broker.PoolTime) bool {
	t.forget(now)
	return slices.ContainsFunc(t.byRoom[room], func(s broker.Tombstone) bool { return s.Epoch >= epoch })
}

// demand is what was refused, each room once, and in the order of refusal.
type demand struct {
	rooms map[string]refusal
	total int // participants
	line  []refused
}

type refusal struct {
	at           broker.PoolTime
	participants int
}

type refused struct {
	room string
	at   broker.PoolTime
}

func newDemand() demand { return demand{rooms: map[string]refusal{}} }

func (d *demand) add(room string, participants int, now broker.PoolTime) {
	d.forget(now)
	d.remove(room)
	d.rooms[room] = refusal{now, participants}
	d.total += participants
	d.line = append(d.line, refused{room, now})
}

func (d *demand) remove(room string) {
	d.total -= d.rooms[room].participants
	delete(d.rooms, room)
}

// forget drops what was refused longer than DemandTTL ago. A room that was refused again since
// then has a later place in the line too.
func (d *demand) forget(now broker.PoolTime) {
	n := 0
	for ; n < len(d.line) && now.Since(d.line[n].at) > broker.DemandTTL; n++ {
		if r, ok := d.rooms[d.line[n].room]; ok && now.Since(r.at) > broker.DemandTTL {
			d.remove(d.line[n].room)
		}
	}
	d.line = d.line[n:]
}
