package memstore

import (
	"maps"
	"slices"

	"github.com/roomscaler/roomscaler/broker"
)

// Lose makes the store as empty as a new one.
func (s *Store) Lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data = New(Options{}).data
}

// Copy remembers the content; the returned function brings it back without its term.
func (s *Store) Copy() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.data.clone()
	old.term = ""
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.data = old
	}
}

func (d *data) clone() data {
	c := *d
	c.pins, c.order, c.instances = map[string]*broker.Pin{}, ordered{}, map[string]*instance{}
	for name, in := range d.instances {
		facts := d.show(in)
		facts.Pins, facts.Reserved = 0, 0
		c.instances[name] = &instance{facts: facts, known: in.known, tried: in.tried}
	}
	for _, p := range d.pins {
		empty := c.instances[p.Instance].facts.EmptySince
		c.bind(clonePin(p))
		c.instances[p.Instance].facts.EmptySince = empty
	}
	c.tombs = newTombs()
	for _, b := range d.tombs.line {
		c.tombs.add(b.instance, b.stone)
	}
	c.demand = demand{rooms: maps.Clone(d.demand.rooms), total: d.demand.total, line: slices.Clone(d.demand.line)}
	c.plan = clonePlan(d.plan)
	return c
}
