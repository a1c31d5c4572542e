package scaler

import (
	"fmt"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

// removal says whether an instance may go, and at what cost.
type removal struct {
	ok       bool
	occupied bool   // its grace is over: rooms do not hinder
	why      string // it may not
}

// mayGo decides whether an instance may be taken away, by the broker's facts and by its pod.
func (l *law) mayGo(in *brokerapi.Instance) removal {
	may := removable(in, l.t)
	if may.ok || l.w == nil || markOf(in, ownerScaler) == nil {
		return may
	}
	pod := l.w.pod(in.Ordinal)
	switch {
	case l.w.condemned(in.Ordinal):
		return removal{ok: true, occupied: in.RoomsLeft > 0} // it goes whatever is answered
	case pod != nil && !pod.Started && neverAnswered(in) && in.RoomsLeft == 0 && in.Reserved == 0:
		return removal{ok: true}
	}
	return may
}

// removable decides whether an instance may be taken away: only one whose mark the
// broker has confirmed, on fresh data, and that has been empty for long enough, or whose grace is over
// for every owner, or that never ran.
func removable(in *brokerapi.Instance, t Target) removal {
	mark := markOf(in, ownerScaler)
	if mark == nil {
		return removal{why: "not marked yet"}
	}
	if neverAnswered(in) {
		long := in.KnownMS >= t.StartTimeout.Milliseconds() && mark.AgeMS >= t.EmptyDwell.Milliseconds()
		if long && in.RoomsLeft == 0 && in.Reserved == 0 && neverRan(in) {
			return removal{ok: true}
		}
		return removal{why: "has not answered yet"}
	}
	if !fresh(in, t) {
		return removal{why: "no fresh data"}
	}
	if *in.AgeMS >= mark.AgeMS {
		return removal{why: "nobody has looked since it was marked"}
	}
	if empty(in, t) {
		return removal{ok: true}
	}
	if mark.AgeMS < t.DrainGrace.Milliseconds() {
		return removal{why: "not empty for long enough"}
	}
	if t.OnGraceExpired != GraceRelease {
		return removal{why: "not empty, and onGraceExpired is hold"}
	}
	for i := range in.Marks {
		m := &in.Marks[i]
		if m.Owner == ownerScaler || m.Owner == ownerBroker {
			continue
		}
		if m.RemainingMS == nil || *m.RemainingMS > 0 {
			return removal{why: "not empty, and " + m.Owner + " still holds it"}
		}
	}
	return removal{ok: true, occupied: true}
}

// empty trusts the broker's word for how long, and checks it against the numbers as
// far as they say something: emptyWhen may have changed a moment ago.
func empty(in *brokerapi.Instance, t Target) bool {
	if in.EmptyMS == nil || *in.EmptyMS < t.EmptyDwell.Milliseconds() || in.RoomsLeft > 0 || in.Reserved > 0 {
		return false
	}
	return t.EmptyWhen == EmptyRooms || in.Sessions != nil && *in.Sessions == 0
}

func markOf(in *brokerapi.Instance, owner string) *brokerapi.Mark {
	for i := range in.Marks {
		if in.Marks[i].Owner == owner {
			return &in.Marks[i]
		}
	}
	return nil
}

// floor is F: one more than the highest ordinal that may not go.
type floor struct {
	n       int
	by, why string
}

func (f *floor) raise(n int, by, why string) {
	if n > f.n {
		*f = floor{n, by, why}
	}
}

// floor finds F. An instance at or above the stored number that was never released was
// started by somebody else: it is taken into range first, and goes the ordinary way from there.
func (l *law) floor() floor {
	no := make(map[string]bool, len(l.refused))
	for _, name := range l.refused {
		no[name] = true
	}
	var lowest floor
	for i := range l.f.Instances {
		in := &l.f.Instances[i]
		if in.Ordinal < lowest.n || letGo(in, l.r) {
			continue
		}
		switch {
		case in.State == stateLost && !l.w.condemned(in.Ordinal) && inUse(in, l.t):
			lowest.raise(in.Ordinal+1, in.Name, "it was fenced, and answers again with people on it")
		case in.State == stateLost:
		case no[in.Name]:
			lowest.raise(in.Ordinal+1, in.Name, "the store refused to release it")
		case in.Ordinal >= l.r && l.w.condemned(in.Ordinal):
		case in.Ordinal >= l.r:
			lowest.raise(in.Ordinal+1, in.Name, "started by somebody else")
		default:
			if may := l.mayGo(in); !may.ok {
				lowest.raise(in.Ordinal+1, in.Name, may.why)
			}
		}
	}
	switch {
	case l.w != nil:
		l.floorOfPods(&lowest)
	default:
		l.floorOfStarting(&lowest)
	}
	return lowest
}

// inUse reports whether a look that counts has found somebody or a room.
func inUse(in *brokerapi.Instance, t Target) bool {
	return fresh(in, t) && (in.RoomsLeft > 0 || in.Sessions != nil && *in.Sessions > 0 || in.Rooms != nil && *in.Rooms > 0)
}

// known returns which ordinals the broker has an instance of.
func (l *law) known(lost bool) map[int]bool {
	known := make(map[int]bool, len(l.f.Instances))
	for i := range l.f.Instances {
		if in := &l.f.Instances[i]; lost || in.State != stateLost {
			known[in.Ordinal] = true
		}
	}
	return known
}

// floorOfStarting raises the floor above the ordinals in range whose instance may still be on its way: a number that has
// fallen below one would have to rise again when it appears. Kubernetes says whether there is a pod at all.
func (l *law) floorOfStarting(lowest *floor) {
	first := l.r
	for _, s := range l.next.InRange {
		if l.now-s.At < l.t.StartTimeout.Milliseconds() {
			first = s.N
			break
		}
	}
	if first >= l.r {
		return
	}
	known := l.known(true)
	for i := l.r - 1; i >= first && i >= lowest.n; i-- {
		if !known[i] {
			lowest.raise(i+1, "", fmt.Sprintf("the instance with ordinal %d may still be starting", i))
			return
		}
	}
}

// floorOfPods raises the floor above the pods that the broker does not know and that may have begun to work.
func (l *law) floorOfPods(lowest *floor) {
	known := l.known(false)
	for i := range l.w.Pods {
		p := &l.w.Pods[i]
		if p.Ordinal < lowest.n || known[p.Ordinal] || l.w.condemned(p.Ordinal) {
			continue
		}
		name := fmt.Sprintf("%s-%d", l.w.Name, l.start+p.Ordinal)
		switch {
		case p.Ordinal >= l.r && !l.hasReleased(p.Ordinal):
			lowest.raise(p.Ordinal+1, name, "started by somebody else")
		case p.Ordinal < l.r && p.Started:
			lowest.raise(p.Ordinal+1, name, "the broker does not know it yet")
		}
	}
}
