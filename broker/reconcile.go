package broker

import "time"

// ReconcileInput is what one good look at an instance is compared with.
type ReconcileInput struct {
	Begin PoolTime // of the look
	Now   PoolTime
	Pins  []Pin // on the instance, read after the look
	Look  Look
	// CreateGrace is how long a pin may be in state creating without its room being there: a create may
	// still be on its way.
	CreateGrace time.Duration
	// ReserveFor is how long after its claim a room's expected participants are reckoned with.
	ReserveFor time.Duration
}

// ReconcilePlan is what a look means for the directory. Each step is a conditional write, so that
// several brokers doing the same only repeat each other.
type ReconcilePlan struct {
	Confirm []Pin         // seen: creating becomes live
	Missing []Pin         // not seen, though they should be: to be asked for by name, then ended
	Adopt   []Adoption    // seen, without a pin
	Reserve []Reservation // whose reservation has changed
}

// Reconcile compares a look with the directory. It is pure.
func Reconcile(in ReconcileInput) ReconcilePlan {
	var p ReconcilePlan
	seen := make(map[string]RoomSeen, len(in.Look.Rooms))
	for _, r := range in.Look.Rooms {
		seen[key(r.Room, r.Epoch)] = r
	}
	pinned := make(map[string]bool, len(in.Pins))
	for _, pin := range in.Pins {
		k := key(pin.Room, pin.Epoch)
		pinned[k] = true
		r, ok := seen[k]
		if !ok {
			if pin.Since < in.Begin && (pin.State == Live || in.Now.Since(pin.Since) > in.CreateGrace) {
				p.Missing = append(p.Missing, pin)
			}
			continue
		}
		if pin.State == Creating {
			p.Confirm = append(p.Confirm, pin)
		}
		left := max(0, pin.Expected-r.Publishers)
		if in.Now.Since(pin.Created) > in.ReserveFor {
			left = 0
		}
		// A reservation only ever shrinks: people who left are not expected again.
		if left < pin.Reserved {
			p.Reserve = append(p.Reserve, Reservation{pin.Room, pin.Epoch, left})
		}
	}
	for _, r := range in.Look.Rooms {
		if !pinned[key(r.Room, r.Epoch)] {
			p.Adopt = append(p.Adopt, Adoption{Room: r.Room, Epoch: r.Epoch, Expected: r.Expected, Settings: r.Settings, Labels: r.Labels})
		}
	}
	return p
}

func key(room string, e Epoch) string { return e.String() + " " + room }

// Identity is what a look's marker says about whose look it is.
type Identity int

// The identities.
const (
	SameLife  Identity = iota // the recorded incarnation
	FirstLife                 // none is recorded, and a marker is there: take it
	NewLife                   // another marker, and none of the pinned rooms: a new life that somebody has already named
	Unnamed                   // no marker and no pinned room: name a new life
	Replant                   // the marker alone is gone: plant it again
	Stranger                  // it shows another instance's marker, or another nonce with rooms of the old one
	Unclear                   // a room was confirmed after the look began: look again
)

// Identify compares what a look shows with the recorded incarnation ("" = none) and the pins on it. It is pure.
func Identify(pool, instance, recorded string, begin PoolTime, pins []Pin, l Look) Identity {
	if m := l.Marker; m != nil {
		switch {
		case m.Pool != pool || m.Instance != instance:
			return Stranger
		case recorded == "":
			return FirstLife
		case m.Incarnation == recorded:
			return SameLife
		case anyThere(pins, l):
			return Stranger
		}
		return NewLife
	}
	switch {
	case recorded == "":
		return Unnamed
	case anyThere(pins, l):
		return Replant
	}
	for _, p := range pins {
		if p.State == Live && p.Since >= begin {
			return Unclear
		}
	}
	return Unnamed
}

func anyThere(pins []Pin, l Look) bool {
	seen := make(map[string]bool, len(l.Rooms))
	for _, r := range l.Rooms {
		seen[key(r.Room, r.Epoch)] = true
	}
	for _, p := range pins {
		if seen[key(p.Room, p.Epoch)] {
			return true
		}
	}
	return false
}
