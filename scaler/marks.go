package scaler

import (
	"cmp"
	"slices"
	"time"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

// The rate limit of new marks: this share of the instances, and at least so many, in each period of
// emptyDwell. It bounds what one wrong number can do.
const (
	cordonShare = 10 // one in so many
	cordonLeast = 4
)

// marks returns which instances to mark, those from ordinal keep on, and whose mark
// to remove, those below want. Only the scaler's own mark counts here: an instance that another owner has
// marked gets the scaler's as well.
func (l *law) marks(keep, want int) (cordon, uncordon []string) {
	var over []*brokerapi.Instance
	for i := range l.f.Instances {
		in := &l.f.Instances[i]
		if in.State == stateLost || in.State == stateReleased {
			continue
		}
		marked := markOf(in, ownerScaler) != nil
		switch {
		case marked && in.Ordinal < want:
			uncordon = append(uncordon, in.Name)
		case !marked && in.Ordinal >= keep:
			over = append(over, in)
		}
	}
	slices.SortStableFunc(over, func(a, b *brokerapi.Instance) int { return cmp.Compare(b.Ordinal, a.Ordinal) })
	for _, in := range over[:l.allowed(len(over))] {
		cordon = append(cordon, in.Name)
	}
	return cordon, uncordon
}

// allowed takes up to n marks out of the present period's allowance.
func (l *law) allowed(n int) int {
	if n == 0 {
		return 0
	}
	c := &l.next.Cordoned
	if period := max(l.t.EmptyDwell, time.Second); c.N == 0 || l.now-c.At >= period.Milliseconds() {
		*c = Sample{At: l.now}
	}
	n = min(n, max(0, max(cordonLeast, l.r/cordonShare)-c.N))
	c.N += n
	return n
}

// seals returns what a lower number takes away. The store checks each of them once more.
func (l *law) seals(desired int) []brokerapi.Seal {
	if desired >= l.r {
		return nil
	}
	var seals []brokerapi.Seal
	for i := range l.f.Instances {
		in := &l.f.Instances[i]
		if in.Ordinal < desired || in.State == stateLost || in.State == stateReleased {
			continue
		}
		may := l.mayGo(in)
		seals = append(seals, brokerapi.Seal{Instance: in.Name, Incarnation: in.Incarnation, Occupied: may.occupied})
	}
	return seals
}

// settled is how long after a number was replaced its effect may still come: it may have
// been answered for ServeTTL, and an answer takes up to the release guard to have its effect.
func (l *law) settled() time.Duration { return ServeTTL + l.t.ReleaseGuard }

// unseals returns the released instances whose release is provably off: every number
// that was in force within the settling time leaves them in.
func (l *law) unseals(desired int) []string {
	lowest := desired
	for _, s := range l.next.Lows {
		lowest = min(lowest, s.N)
	}
	var names []string
	for i := range l.f.Instances {
		in := &l.f.Instances[i]
		if in.State == stateReleased && in.Ordinal < lowest && l.isBack(in.Ordinal) {
			names = append(names, in.Name)
		}
	}
	return names
}

// guard is how long the ordinals that a higher number brings take no room, because a lower one
// may still be answered or be on its way.
func (l *law) guard(desired int) time.Duration {
	if l.f.Plan == nil || l.f.Plan.Version == 0 {
		return l.settled() // what was answered in the term before may still have its effect
	}
	if desired <= l.r {
		return 0
	}
	lowered := l.next.Lowered >= 0 && l.now-l.next.Lowered < l.settled().Milliseconds()
	// Somebody has raised the number of replicas above the answer: the autoscaler is about to undo it.
	adopted := l.low.n > l.r
	if adopted || lowered && !l.damped() {
		return l.settled()
	}
	return ServeTTL
}

// dampedFrom is the downscale window of the autoscaler from which on it forgets a lower answer once a higher one has
// been given: it takes the highest of the window.
const dampedFrom = time.Minute

// damped reports whether no lower number can take away what a higher one brings. The autoscaler does one thing after
// the other, so a pod that it has yet to ask for comes after every write of before; one that is there already, by
// somebody's hand or not known when the number fell, may still be taken away by a late write.
func (l *law) damped() bool {
	if l.w == nil || l.w.HPA == nil || l.w.HPA.WindowMS < dampedFrom.Milliseconds() {
		return false
	}
	for i := l.r; i < l.w.Replicas; i++ {
		if !l.hasReleased(i) {
			return false
		}
	}
	for i := range l.w.Pods {
		if p := &l.w.Pods[i]; p.Ordinal >= l.r && !l.hasReleased(p.Ordinal) {
			return false
		}
	}
	return true
}
