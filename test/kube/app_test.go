package kube

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

// app is an application that opens rooms at the broker and ends them.
type app struct {
	w     *world
	rooms map[string]*room
	named int
}

type room struct {
	ends time.Time // zero: never
	pin  *brokerapi.Pin
	lost bool // its server is gone
}

// open opens n rooms, each of which fills an instance, for so long from now; 0 is for ever. They are asked for until
// there is a place.
func (a *app) open(n int, d time.Duration) {
	for range n {
		a.named++
		r := &room{}
		if d > 0 {
			r.ends = time.Now().Add(d)
		}
		a.rooms[fmt.Sprintf("room-%04d", a.named)] = r
	}
}

// end ends the room on an instance.
func (a *app) end(ordinal int) {
	name := fmt.Sprintf("%s-%d", setName, ordinal)
	for _, r := range a.rooms {
		if r.pin != nil && r.pin.Instance == name {
			r.ends = time.Now()
		}
	}
	a.act()
}

// waiting returns how many rooms have no place yet.
func (a *app) waiting() (n int) {
	for _, r := range a.rooms {
		if r.pin == nil {
			n++
		}
	}
	return n
}

// act does what is due.
func (a *app) act() {
	a.w.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(a.rooms)) {
		r := a.rooms[name]
		over := !r.ends.IsZero() && !time.Now().Before(r.ends)
		switch {
		case over && r.pin == nil, r.lost:
			delete(a.rooms, name)
		case over:
			a.w.media.fill(r.pin.Instance, broker.Epoch(r.pin.Epoch), 0)
			if err := a.w.client.DeleteRoom(a.w.ctx, setName, name, 0); err != nil {
				a.w.t.Logf("end %s: %v", name, err)
			}
			delete(a.rooms, name)
		case r.pin == nil:
			pin, _, err := a.w.client.CreateRoom(a.w.ctx, setName, name, brokerapi.CreateRoom{ExpectedParticipants: perServer})
			if err == nil {
				r.pin = &pin
				r.lost = !a.w.media.fill(pin.Instance, broker.Epoch(pin.Epoch), perServer)
			}
		default:
			r.lost = !a.w.media.fill(r.pin.Instance, broker.Epoch(r.pin.Epoch), perServer)
		}
	}
}
