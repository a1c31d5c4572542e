// Package memstore is the embedded default store: the directory of one pool in the
// memory of one process. It suits a broker that runs as a single replica; what a
// restart loses is rebuilt from the instances, as with any lost store.
//
// Its methods never block on anything but each other, and ignore their context:
// memory always answers.
package memstore

import (
	"maps"
	"sync"
	"time"

	"github.com/roomscaler/roomscaler/broker"
)

// DefaultStepCap is two sweeps of the default length.
const DefaultStepCap = 10 * time.Second

// Options are the settings of a store; the zero value is usable.
type Options struct {
	// StepCap is the most that one step adds to the pool's clock: two sweeps. 0 means
	// DefaultStepCap.
	StepCap time.Duration
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
}

// Store is a broker.Store in memory. It is safe for concurrent use. A new one has no
// term: ErrStoreLost until Begin.
type Store struct {
	now  func() time.Time
	step time.Duration

	mu sync.Mutex
	data
}

// data is everything the store remembers, guarded by Store.mu.
type data struct {
	clock clock

	term  broker.Term
	phase broker.Phase
	floor int
	plan  broker.Plan

	epoch     broker.Epoch // the last one given or seen
	pins      map[string]*broker.Pin
	order     ordered // names of all pins
	instances map[string]*instance
	tombs     tombs
	demand    demand
}

// instance is what is remembered of one instance, and the index of its pins. The
// counts in facts are kept up by bind and unbind; OldestPin only where it is shown.
type instance struct {
	facts  broker.Instance
	known  broker.PoolTime // since when
	tried  broker.PoolTime // begin of the latest failed look
	rooms  ordered
	oldest broker.PoolTime // of its pins; stale says that it must be sought anew
	stale  bool
}

var _ broker.Store = (*Store)(nil)

// New returns an empty store.
func New(o Options) *Store {
	s := &Store{now: o.Now, step: o.StepCap}
	if s.now == nil {
		s.now = time.Now
	}
	if s.step <= 0 {
		s.step = DefaultStepCap
	}
	s.data = data{
		pins:      map[string]*broker.Pin{},
		instances: map[string]*instance{},
		tombs:     newTombs(),
		demand:    newDemand(),
	}
	return s
}

// begin starts a step: it takes the lock and advances the clock. The caller unlocks.
func (s *Store) begin() broker.PoolTime {
	s.mu.Lock()
	return s.clock.advance(s.now(), s.step)
}

// check reports whether the step's caller means the present term.
func (d *data) check(term broker.Term) error {
	switch d.term {
	case "":
		return broker.ErrStoreLost
	case term:
		return nil
	}
	return broker.ErrTerm
}

// known returns the instance, or ErrInstanceNotFound.
func (d *data) known(name string) (*instance, error) {
	in, ok := d.instances[name]
	if !ok {
		return nil, broker.ErrInstanceNotFound
	}
	return in, nil
}

// introduce makes an instance known.
func (d *data) introduce(name string, ordinal int, address string) *instance {
	in := &instance{known: d.clock.pool(), tried: broker.Never, facts: broker.Instance{
		Name: name, Ordinal: ordinal, Address: address,
		LookBegin: broker.Never, EmptySince: broker.Never, OldestPin: broker.Never,
		FirstSeen: broker.Never, ListedAt: broker.Never, LifeSince: broker.Never, FaultSince: broker.Never,
	}}
	d.instances[name] = in
	return in
}

// bind enters a pin whose room has none. An instance with a pin is not empty.
func (d *data) bind(p broker.Pin) {
	d.pins[p.Room] = &p
	d.order.insert(p.Room)
	in := d.instances[p.Instance]
	in.rooms.insert(p.Room)
	in.facts.Pins++
	in.facts.Reserved += p.Reserved
	in.facts.EmptySince = broker.Never
	if in.facts.Pins == 1 || p.Created < in.oldest {
		in.oldest = p.Created
	}
}

// unbind takes a pin out of the directory.
func (d *data) unbind(p *broker.Pin) {
	delete(d.pins, p.Room)
	d.order.remove(p.Room)
	in := d.instances[p.Instance]
	in.rooms.remove(p.Room)
	in.facts.Pins--
	in.facts.Reserved -= p.Reserved
	if p.Created == in.oldest {
		in.stale = true
	}
}

// end takes a pin out and leaves its tombstone.
func (d *data) end(p *broker.Pin, cause broker.Cause) broker.Pin {
	d.unbind(p)
	d.tombs.add(p.Instance, broker.Tombstone{Room: p.Room, Epoch: p.Epoch, Cause: cause, Ended: d.clock.pool()})
	return clonePin(p)
}

// endAll ends every pin of an instance and returns them in order of room name.
func (d *data) endAll(in *instance, cause broker.Cause) []broker.Pin {
	var ended []broker.Pin
	for _, room := range in.rooms.after("", 0) {
		ended = append(ended, d.end(d.pins[room], cause))
	}
	return ended
}

// show returns a copy of what is remembered of an instance.
func (d *data) show(in *instance) broker.Instance {
	if in.stale {
		in.oldest, in.stale = broker.Never, false
		for _, room := range in.rooms.after("", 0) {
			if c := d.pins[room].Created; in.oldest == broker.Never || c < in.oldest {
				in.oldest = c
			}
		}
	}
	out := in.facts
	out.OldestPin = broker.Never
	if out.Pins > 0 {
		out.OldestPin = in.oldest
	}
	out.Marks = append([]broker.Mark(nil), in.facts.Marks...)
	if in.facts.Seal != nil {
		seal := *in.facts.Seal
		out.Seal = &seal
	}
	return out
}

func clonePin(p *broker.Pin) broker.Pin {
	out := *p
	out.Labels = maps.Clone(p.Labels)
	return out
}
