package scaler

import "slices"

// Release is a pod that a lower number takes away. The broker's seals say the same of the instances that it knows;
// this holds for pods that never came so far.
type Release struct {
	Ordinal int    `json:"ordinal"`
	UID     string `json:"uid"`
}

// hasReleased reports whether the pod of an ordinal is on its way out by a number that was stored before.
func (l *law) hasReleased(ordinal int) bool {
	return l.last != nil && !l.moved && slices.ContainsFunc(l.last.Released, func(r Release) bool { return r.Ordinal == ordinal })
}

// isBack reports whether it is certain that no lower number has taken the pod of a released ordinal away, for which
// the API server itself must have been asked. Where Kubernetes is not read, time alone decides.
func (l *law) isBack(ordinal int) bool {
	if l.w == nil {
		return true
	}
	p := l.w.pod(ordinal)
	if p == nil || p.Terminating || l.w.Replicas <= ordinal {
		return false
	}
	if !l.live {
		l.ask = true
		return false
	}
	return true
}

// releases carries the ledger on. An entry ends when its pod is gone and spec.replicas does not ask for the ordinal,
// or when every number that may still have an effect leaves the ordinal in and the pod is back or gone.
func (l *law) releases(desired int) []Release {
	if l.w == nil {
		return nil
	}
	lowest := desired
	for _, s := range l.next.Lows {
		lowest = min(lowest, s.N)
	}
	var kept []Release
	if l.last != nil && !l.moved {
		for _, r := range l.last.Released {
			p := l.w.pod(r.Ordinal)
			gone := p == nil || p.UID != r.UID
			switch {
			case gone && l.w.Replicas <= r.Ordinal:
			case r.Ordinal < lowest && (gone || l.isBack(r.Ordinal)):
			default:
				kept = append(kept, r)
			}
		}
	}
	if desired >= l.r {
		return kept
	}
	for i := range l.w.Pods {
		p := &l.w.Pods[i]
		same := func(r Release) bool { return r.Ordinal == p.Ordinal }
		if p.Ordinal >= desired && !slices.ContainsFunc(kept, same) {
			kept = append(kept, Release{p.Ordinal, p.UID})
		}
	}
	return kept
}
