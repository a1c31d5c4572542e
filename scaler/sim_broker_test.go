package scaler_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

// A model of a broker for the Monte-Carlo test: it keeps its promises (claims, marks, seals, guards) unless a switch
// takes one away. All times are milliseconds of the simulation.

type simRoom struct {
	people int
	ends   int64
	since  int64
}

type simInstance struct {
	brokerapi.Instance
	lookBegin  int64 // -1: never
	emptySince int64 // -1: not empty
	markSince  int64 // -1: no mark of the scaler's
	sealed     bool
	known      int64
	listed     int64
	rooms      map[*simRoom]bool // the directory's pins
}

type simGuard struct {
	limit int
	until int64
}

type simBroker struct {
	noSealCheck bool // switch: a lower number is stored whatever is there
	noLedger    bool // switch: a release ends at once, and rises are not guarded

	target    int
	instances map[int]*simInstance
	plan      *brokerapi.Plan
	planAt    int64
	guards    []simGuard
	demand    []simRoom // refused within the last 30 s; since is when
}

func (b *simBroker) instance(i int, now int64) *simInstance {
	in, ok := b.instances[i]
	if !ok {
		in = &simInstance{
			Instance:  brokerapi.Instance{Name: name(i), Ordinal: i, Reason: "refused"},
			lookBegin: -1, emptySince: -1, markSince: -1, known: now, rooms: map[*simRoom]bool{},
		}
		b.instances[i] = in
	}
	return in
}

// look is a good look at a pod that answers.
func (b *simBroker) look(p *simPod, now int64) {
	in := b.instance(p.ordinal, now)
	if in.Incarnation != p.life {
		// Another life: its rooms are gone, and so are the marks; a seal stays.
		in.Incarnation, in.markSince, in.emptySince = p.life, -1, -1
		in.rooms = map[*simRoom]bool{}
	}
	in.lookBegin, in.listed, in.Reason = now, now, ""
	people := 0
	for r := range in.rooms {
		people += r.people
	}
	in.Sessions, in.Rooms = ptr(people), ptr(len(in.rooms))
	switch {
	case len(in.rooms) > 0 || in.markSince < 0:
		in.emptySince = -1
	case in.emptySince < 0 && now > in.markSince:
		in.emptySince = now
	}
}

// forget drops instances whose pod is gone.
func (b *simBroker) forget(now int64) {
	for i, in := range b.instances {
		if gone := now - in.listed; in.sealed && gone > 6_000 || gone > 60_000 {
			delete(b.instances, i)
		}
	}
}

// claim places a room: the lowest ordinal below the target, else the least loaded below twice of it.
func (b *simBroker) claim(r simRoom, now int64) *simInstance {
	limit := 1 << 30
	if b.plan != nil {
		limit = b.plan.Desired
	}
	for _, g := range b.guards {
		if now < g.until && !b.noLedger {
			limit = min(limit, g.limit)
		}
	}
	var soft, hard *simInstance
	for _, i := range b.ordinals() {
		in := b.instances[i]
		if i >= limit || in.lookBegin < 0 || now-in.lookBegin > 15_000 || in.markSince >= 0 || in.sealed {
			continue
		}
		load := r.people
		for other := range in.rooms {
			load += other.people
		}
		if load <= b.target && soft == nil {
			soft = in
		}
		if load <= 2*b.target && (hard == nil || len(in.rooms) < len(hard.rooms)) {
			hard = in
		}
	}
	if soft == nil {
		soft = hard
	}
	if soft == nil {
		b.demand = append(b.demand, simRoom{people: r.people, since: now})
		return nil
	}
	soft.rooms[&r] = true
	soft.emptySince = -1
	return soft
}

func (b *simBroker) ordinals() []int {
	all := make([]int, 0, len(b.instances))
	for i := range b.instances {
		all = append(all, i)
	}
	slices.Sort(all)
	return all
}

func (b *simBroker) facts(now int64) brokerapi.PoolFacts {
	f := brokerapi.PoolFacts{Pool: "janus", Term: "t1", Phase: brokerapi.PhaseReady, NowMS: now, EmptyWhen: "sessions"}
	b.demand = slices.DeleteFunc(b.demand, func(r simRoom) bool { return now-r.since > 30_000 })
	for _, r := range b.demand {
		f.Queue.Rooms++
		f.Queue.Participants += r.people
	}
	for _, i := range b.ordinals() {
		in := b.instances[i]
		shown := in.Instance
		shown.State, shown.KnownMS, shown.RoomsLeft = "ready", now-in.known, len(in.rooms)
		for r := range in.rooms {
			if r.since > in.lookBegin {
				shown.Reserved += r.people
			}
		}
		if in.lookBegin >= 0 {
			shown.AgeMS = ptr(now - in.lookBegin)
		}
		if in.emptySince >= 0 && len(in.rooms) == 0 {
			shown.EmptyMS = ptr(now - in.emptySince)
		}
		if in.markSince >= 0 {
			shown.State = "cordoned"
			shown.Marks = []brokerapi.Mark{{Owner: "scaler", AgeMS: now - in.markSince}}
		}
		if in.sealed {
			shown.State = "released"
		}
		f.Instances = append(f.Instances, shown)
	}
	if b.plan != nil {
		p := *b.plan
		p.AgeMS = now - b.planAt
		f.Plan = &p
	}
	return f
}

func (b *simBroker) mark(instance string, set bool, now int64) {
	for _, in := range b.instances {
		switch {
		case in.Name != instance:
		case set && in.markSince < 0:
			in.markSince, in.emptySince = now, -1
		case !set && !in.sealed:
			in.markSince, in.emptySince = -1, -1
		}
	}
}

// put stores a plan as the store's contract says, and reports whether it did.
func (b *simBroker) put(ifVersion int64, p brokerapi.PutPlan, now int64) bool {
	version, before := int64(0), 0
	if b.plan != nil {
		version, before = b.plan.Version, b.plan.Desired
	}
	if version != ifVersion {
		return false
	}
	seals := map[string]brokerapi.Seal{}
	for _, s := range p.Seal {
		seals[s.Instance] = s
	}
	if p.Desired < before {
		for i, in := range b.instances {
			s, named := seals[in.Name]
			ok := named && s.Incarnation == in.Incarnation && (in.markSince >= 0 || in.lookBegin < 0) && len(in.rooms) == 0
			if i >= p.Desired && !in.sealed && !ok && !b.noSealCheck {
				return false
			}
		}
	}
	for i, in := range b.instances {
		if _, named := seals[in.Name]; named {
			in.sealed = true
		}
		if in.sealed && i < p.Desired && (slices.Contains(p.Unseal, in.Name) || b.noLedger) {
			in.sealed = false
		}
	}
	if p.Desired > before && b.plan != nil {
		b.guards = slices.DeleteFunc(b.guards, func(g simGuard) bool { return now >= g.until })
		b.guards = append(b.guards, simGuard{before, now + p.GuardMS})
		b.guards = oneGuard(b.guards)
	}
	b.plan = &brokerapi.Plan{Version: version + 1, Desired: p.Desired, Target: p.Target, EmptyWhen: p.EmptyWhen, Body: p.Body}
	b.planAt = now
	return true
}

// oneGuard keeps the lowest limit until the last has run out.
func oneGuard(gs []simGuard) []simGuard {
	low := slices.MinFunc(gs, func(a, b simGuard) int { return cmp.Compare(a.limit, b.limit) })
	last := slices.MaxFunc(gs, func(a, b simGuard) int { return cmp.Compare(a.until, b.until) })
	return []simGuard{{low.limit, last.until}}
}

type simPod struct {
	ordinal int
	life    string
	born    int64
	ready   int64 // when it answers
	dying   bool
	goneAt  int64
}

func newPod(i int, now int64, rng *rand.Rand) *simPod {
	return &simPod{ordinal: i, life: fmt.Sprintf("%d-%d", i, now), born: now, ready: now + 3000 + rng.Int64N(15_000)}
}
