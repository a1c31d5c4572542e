package scaler

import "github.com/roomscaler/roomscaler/broker/brokerapi"

// removal says whether an instance may go, and at what cost.
type removal struct {
	ok       bool
	occupied bool   // its grace is over: rooms do not hinder
	why      string // it may not
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

// floorOf finds F. An instance at or above the stored number that was never released was
// started by somebody else: it is taken into range first, and goes the ordinary way from there.
func floorOf(f brokerapi.PoolFacts, t Target, r int, refused []string) floor {
	no := make(map[string]bool, len(refused))
	for _, name := range refused {
		no[name] = true
	}
	var lowest floor
	for i := range f.Instances {
		in := &f.Instances[i]
		if in.Ordinal < lowest.n || in.State == stateLost || letGo(in, r) {
			continue
		}
		switch {
		case no[in.Name]:
			lowest.raise(in.Ordinal+1, in.Name, "the store refused to release it")
		case in.Ordinal >= r:
			lowest.raise(in.Ordinal+1, in.Name, "started by somebody else")
		default:
			if may := removable(in, t); !may.ok {
				lowest.raise(in.Ordinal+1, in.Name, may.why)
			}
		}
	}
	return lowest
}
