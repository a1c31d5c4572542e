// Package load opens rooms at a broker and lets people into them, by a plan made from a seed, and notices every room that
// ends while somebody is in it.
package load

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Room is one room of a plan.
type Room struct {
	Name   string
	At     time.Duration // when it opens, from the start
	Hold   time.Duration // how long its people stay
	People int
	Long   bool // it outlives the fall of demand
}

// Point is a corner of a profile.
type Point struct {
	At       time.Duration
	Sessions float64
}

// Profile is the demand over time.
type Profile struct {
	Points    []Point // in order of time; straight lines between them
	Least     time.Duration
	Most      time.Duration // of a room's hold
	LongRooms int           // as many rooms, opened before LongFrom, stay until between LongUntil[0] and LongUntil[1]
	LongFrom  [2]time.Duration
	LongUntil [2]time.Duration
	LeastRoom int // people in a room
	MostRoom  int
}

// Demand rises from a base to a peak and falls back, in the proportions of the demonstration. unit stretches
// all its times; 1 gives rooms of 9 to 22 s.
func Demand(base, peak int, unit float64) Profile {
	s := func(sec float64) time.Duration { return time.Duration(sec * unit * float64(time.Second)) }
	b, p := float64(base), float64(peak)
	return Profile{
		Points:    []Point{{0, b / 2}, {s(4), b}, {s(12), b}, {s(24), p}, {s(74), p}, {s(82), b}, {s(240), b}},
		Least:     s(9),
		Most:      s(22),
		LongRooms: 8,
		LongFrom:  [2]time.Duration{s(58), s(72)},
		LongUntil: [2]time.Duration{s(110), s(126)},
		LeastRoom: 2,
		MostRoom:  4,
	}
}

// End is the time of the profile's last point: no room opens later.
func (p Profile) End() time.Duration { return p.Points[len(p.Points)-1].At }

// Sessions is the demand at a time.
func (p Profile) Sessions(at time.Duration) float64 {
	for i, b := range p.Points {
		if at > b.At {
			continue
		}
		if i == 0 {
			return b.Sessions
		}
		a := p.Points[i-1]
		return a.Sessions + (b.Sessions-a.Sessions)*float64(at-a.At)/float64(b.At-a.At)
	}
	return p.Points[len(p.Points)-1].Sessions
}

// step is the time between two looks at the demand while planning.
const step = 100 * time.Millisecond

// Plan makes the rooms of a profile, in order of their opening. The same seed gives the same rooms.
func (p Profile) Plan(seed uint64) []Room {
	r := rand.New(rand.NewPCG(seed, 0x726f6f6d73))
	between := func(a, b time.Duration) time.Duration { return a + time.Duration(r.Float64()*float64(b-a)) }
	size := func() int { return p.LeastRoom + r.IntN(p.MostRoom-p.LeastRoom+1) }
	var rooms []Room
	for range p.LongRooms {
		at := between(p.LongFrom[0], p.LongFrom[1])
		rooms = append(rooms, Room{At: at, Hold: between(p.LongUntil[0], p.LongUntil[1]) - at, People: size(), Long: true})
	}
	for at := time.Duration(0); at < p.End(); at += step {
		now := 0
		for _, room := range rooms {
			if room.At <= at && at < room.At+room.Hold {
				now += room.People
			}
		}
		for float64(now) < p.Sessions(at) {
			room := Room{At: at + between(0, step), Hold: between(p.Least, p.Most), People: size()}
			rooms = append(rooms, room)
			now += room.People
		}
	}
	slices.SortStableFunc(rooms, func(a, b Room) int { return cmp.Compare(a.At, b.At) })
	for i := range rooms {
		rooms[i].Name = fmt.Sprintf("room-%03d", i+1)
	}
	return rooms
}
