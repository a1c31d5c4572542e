package broker

import (
	"cmp"
	"slices"
)

// Placement is a policy for choosing a room's instance.
type Placement string

// The placements.
const (
	LeastLoaded Placement = "least-loaded" // spreads; ties by ordinal
	Packed      Placement = "packed"       // lowest ordinal below target first: empties the top
	RoundRobin  Placement = "round-robin"
)

// maxCandidates bounds what one claim has to look at. The best of a pool are among
// the first of a snapshot that is at most a second old.
const maxCandidates = 32

// PlaceRequest is what Place needs to know besides the facts.
type PlaceRequest struct {
	Placement Placement
	Expected  int             // participants of the room
	Target    int             // sessions per instance that Packed fills to; 0 = no limit
	Max       int             // sessions per instance never to be exceeded; 0 = no limit
	Turn      uint64          // counts up with each room, for RoundRobin
	Skip      map[string]bool // instances that refused this room
	// Identified holds the incarnation that this broker has itself found on each instance. One that it has not, because it
	// cannot reach it or has another room key, takes no room through it. nil: no such limit.
	Identified map[string]string
}

// Place orders the instances that may take a room by preference, the best first, and says how
// a claim is to pick among them. It is pure. The claim checks every condition again; Place only
// spares it the hopeless ones.
func Place(f Facts, r PlaceRequest) (candidates []Candidate, pick Pick, soft int) {
	fit := make([]Instance, 0, len(f.Instances))
	limit := f.Plan.Limit(f.Now)
	for _, in := range f.Instances {
		if in.State() == StateReady && !r.Skip[in.Name] && (r.Identified == nil || r.Identified[in.Name] == in.Incarnation) && in.Ordinal < limit && (r.Max == 0 || in.Load()+r.Expected <= r.Max) {
			fit = append(fit, in)
		}
	}
	pick, soft = PickLeast, 0
	order := byLoad
	switch r.Placement {
	case Packed:
		pick, soft = PickFirst, r.Target
		order = func(a, b Instance) int {
			if c := cmpBool(over(a, r), over(b, r)); c != 0 || over(a, r) {
				return cmp.Or(c, byLoad(a, b))
			}
			return cmp.Compare(a.Ordinal, b.Ordinal)
		}
	case RoundRobin:
		pick = PickFirst
		order = func(a, b Instance) int { return cmp.Compare(a.Ordinal, b.Ordinal) }
	}
	slices.SortStableFunc(fit, func(a, b Instance) int {
		// One that failed its last look is likely to fail the create too.
		return cmp.Or(cmpBool(a.Failures > 0, b.Failures > 0), order(a, b), cmp.Compare(a.Ordinal, b.Ordinal), cmp.Compare(a.Name, b.Name))
	})
	if r.Placement == RoundRobin && len(fit) > 0 {
		turn := int(r.Turn % uint64(len(fit)))
		fit = slices.Concat(fit[turn:], fit[:turn])
	}
	fit = fit[:min(len(fit), maxCandidates)]
	for _, in := range fit {
		candidates = append(candidates, Candidate{in.Name, in.Incarnation})
	}
	return candidates, pick, soft
}

func byLoad(a, b Instance) int { return cmp.Compare(a.Load(), b.Load()) }

func over(in Instance, r PlaceRequest) bool {
	return r.Target > 0 && in.Load()+r.Expected > r.Target
}

func cmpBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
