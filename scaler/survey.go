package scaler

import (
	"strings"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

// maxDemand bounds every sum of the law, far above any real pool.
const maxDemand = 1_000_000_000

// capacity says what an ordinal is worth.
type capacity uint8

const (
	absent  capacity = iota // no instance of it is known
	good                    // takes rooms, or will soon
	broken                  // ought to, and does not: replaced, but only so many at a time
	leaving                 // somebody takes it away: always replaced
)

// slot is one ordinal.
type slot struct {
	worth capacity
	load  int
}

// survey is the pool as the law sees it.
type survey struct {
	slots   []slot // by ordinal, up to the highest in range or known
	load    int    // N
	fresh   int    // instances in range with fresh data
	unknown int    // instances that count without fresh data
	skipped int    // broken ordinals that are replaced
	coming  int    // ordinals in range that count although nothing answers there yet
}

// observe reckons up the instances and pods. r is the stored number, steps say since when ordinals are in range.
func observe(f brokerapi.PoolFacts, w *Workload, t Target, r int, steps []Sample) survey {
	n := r
	for i := range f.Instances {
		n = max(n, f.Instances[i].Ordinal+1)
	}
	if w != nil && len(w.Pods) > 0 {
		n = max(n, w.Pods[len(w.Pods)-1].Ordinal+1)
	}
	s := survey{slots: make([]slot, n)}
	for i := range f.Instances {
		s.add(&f.Instances[i], w, t, r)
	}
	if w != nil {
		s.addPods(w, t)
	}
	s.markAbsent(f.NowMS, w, t, r, steps)
	s.replace(t.MaxReplacements)
	return s
}

func (s *survey) add(in *brokerapi.Instance, w *Workload, t Target, r int) {
	if in.State == stateLost || in.Ordinal < 0 {
		return
	}
	slot := &s.slots[in.Ordinal]
	slot.worth = max(slot.worth, worth(in, w, t))
	load, known := loadOf(in, t)
	known = known && fresh(in, t)
	if known && in.Ordinal < r {
		s.fresh++
	}
	if in.State == stateReleased || w.condemned(in.Ordinal) {
		return // nothing was on it, or it has been given up
	}
	if !known {
		s.unknown++
	}
	if neverAnswered(in) && slot.worth == good && in.Ordinal < r {
		s.coming++
	}
	slot.load = min(slot.load+load, maxDemand)
	s.load = min(s.load+load, maxDemand)
}

// addPods adds what Kubernetes knows and the broker does not: pods that it has not heard of, and that pods terminate.
func (s *survey) addPods(w *Workload, t Target) {
	for i := range w.Pods {
		p := &w.Pods[i]
		if p.Ordinal < 0 {
			continue
		}
		slot := &s.slots[p.Ordinal]
		switch {
		case p.Terminating:
			slot.worth = leaving
		case slot.worth != absent:
		case young(p, t):
			slot.worth = good
			s.coming++
		default:
			slot.worth = broken
		}
	}
}

// young reports whether a pod that does not answer may well do so soon.
func young(p *Pod, t Target) bool {
	return p != nil && !p.Terminating && (p.Unschedulable || p.AgeMS < t.StartTimeout.Milliseconds())
}

// markAbsent decides what ordinals without an instance are worth: those that have been
// in range for a short time are on their way, and so are those that would be new. With Kubernetes every pod that
// is not there is on its way: another one would not come any sooner.
func (s *survey) markAbsent(now int64, w *Workload, t Target, r int, steps []Sample) {
	step := -1
	for i := range s.slots {
		for step+1 < len(steps) && steps[step+1].N <= i {
			step++
		}
		if s.slots[i].worth != absent {
			continue
		}
		coming := i >= r || w != nil || step >= 0 && now-steps[step].At < t.StartTimeout.Milliseconds()
		if coming {
			s.slots[i].worth = good
		} else {
			s.slots[i].worth = broken
		}
		if coming && i < r {
			s.coming++
		}
	}
}

// replace lets the first broken ordinals be replaced. The others count as good: a
// fault that all of them share must not multiply the pool.
func (s *survey) replace(most int) {
	for i := range s.slots {
		if s.slots[i].worth != broken {
			continue
		}
		if s.skipped < most {
			s.skipped++
			continue
		}
		s.slots[i].worth = good
	}
}

// lowestFor returns Dload and Dslot: the least numbers that hold the load with its
// spare, and that have room for what is asked for and the spare.
func (s *survey) lowestFor(perInstance, queued, spare int) (dload, dslot int) {
	need, free := s.load+queued+spare, queued+spare
	held, slots := 0, 0
	dload, dslot = -1, -1
	for i := 0; i <= len(s.slots); i++ {
		if dload < 0 && held >= need {
			dload = i
		}
		if dslot < 0 && slots >= free {
			dslot = i
		}
		if i == len(s.slots) || dload >= 0 && dslot >= 0 {
			break
		}
		if s.slots[i].worth == good {
			held += perInstance
			slots += max(0, perInstance-s.slots[i].load)
		}
	}
	// Ordinals beyond all known ones are new and empty.
	if dload < 0 {
		dload = len(s.slots) + divideUp(need-held, perInstance)
	}
	if dslot < 0 {
		dslot = len(s.slots) + divideUp(free-slots, perInstance)
	}
	return dload, dslot
}

// fits returns how many more sessions may come before the load needs more than n instances.
func (s *survey) fits(w Why, n int) int {
	held, slots := 0, 0
	for i := range n {
		switch {
		case i >= len(s.slots):
			held, slots = held+w.PerInstance, slots+w.PerInstance
		case s.slots[i].worth == good:
			held += w.PerInstance
			slots += max(0, w.PerInstance-s.slots[i].load)
		}
	}
	return max(0, min(held-w.Load, slots)-w.Queued-w.Spare)
}

func divideUp(a, b int) int { return (a + b - 1) / b }

// worth says what an instance that is not lost is worth.
func worth(in *brokerapi.Instance, w *Workload, t Target) capacity {
	if in.State == stateReleased {
		return leaving
	}
	suspect := false
	for i := range in.Marks {
		switch in.Marks[i].Owner {
		case ownerScaler:
		case ownerBroker:
			suspect = true
		default:
			return leaving
		}
	}
	switch {
	case neverAnswered(in):
		if in.KnownMS < t.StartTimeout.Milliseconds() || w != nil && young(w.pod(in.Ordinal), t) {
			return good // whatever the broker thinks of its silence
		}
		return broken
	case suspect, !fresh(in, t):
		return broken
	}
	return good
}

// loadOf returns n, and whether the instance has told it. One that has never been heard of counts as
// full, unless it is new: then no room can be on it yet but those placed there.
func loadOf(in *brokerapi.Instance, t Target) (n int, known bool) {
	var reported *int
	pending := in.Reserved
	switch t.Metric {
	case MetricParticipants:
		reported = in.Participants
	case MetricRooms:
		reported, pending = in.Rooms, 0
	case MetricSessions:
		reported = in.Sessions
	}
	switch {
	case reported != nil:
		n = *reported
	case neverAnswered(in) && in.RoomsLeft == 0:
		n = 0
	default:
		n = t.PerInstance
	}
	n += pending
	if t.Metric == MetricRooms {
		n = max(n, in.RoomsLeft)
	}
	return min(max(n, 0), maxDemand), reported != nil
}

func fresh(in *brokerapi.Instance, t Target) bool {
	return in.AgeMS != nil && *in.AgeMS <= t.StaleAfter.Milliseconds()
}

func neverAnswered(in *brokerapi.Instance) bool { return in.Incarnation == "" && in.AgeMS == nil }

// letGo: its removal has been answered, and no higher number has been stored since.
func letGo(in *brokerapi.Instance, r int) bool {
	return in.State == stateReleased && in.Ordinal >= r
}

// neverRan reports whether the reason of failed looks says that nothing runs there.
func neverRan(in *brokerapi.Instance) bool {
	fault, _, _ := strings.Cut(in.Reason, ":")
	return fault == "refused" || fault == "unreachable"
}
