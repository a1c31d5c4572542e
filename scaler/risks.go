package scaler

import (
	"fmt"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

// risks tells what an operator ought to know, in a fixed order.
func (l *law) risks(w Why, seals []brokerapi.Seal) []Risk {
	var risks []Risk
	add := func(code, form string, args ...any) { risks = append(risks, Risk{code, fmt.Sprintf(form, args...)}) }
	if w.Dnow > w.Maximum {
		add(RiskMaximum, "the load needs %d instances, %s is %d", w.Dnow, l.maximumIs(), w.Maximum)
	}
	if w.Desired > w.Maximum {
		add(RiskAbove, "%d instances stay until they may go, %s is %d", w.Desired, l.maximumIs(), w.Maximum)
	}
	if w.Blind {
		add(RiskBlind, "no instance below %d has fresh data", w.Previous)
	}
	if w.Replaced > 0 {
		add(RiskBroken, "%d instances are missing or do not answer and are made up for; at most %d are", w.Replaced, l.t.MaxReplacements)
	}
	occupied := map[string]bool{}
	for _, s := range seals {
		occupied[s.Instance] = s.Occupied
	}
	for i := range l.f.Instances {
		in := &l.f.Instances[i]
		switch {
		case occupied[in.Name] && l.w.condemned(in.Ordinal):
			add(RiskEnded, "%s was taken away past the scaler with %d rooms on it", in.Name, in.RoomsLeft)
		case occupied[in.Name]:
			add(RiskGrace, "%s is let go with %d rooms after %s", in.Name, in.RoomsLeft, l.t.DrainGrace)
		}
	}
	for _, name := range l.refused {
		add(RiskRefused, "the store does not release %s now", name)
	}
	if l.w == nil {
		return risks
	}
	if l.t.bounded {
		add(RiskBounds, "minInstances and maxInstances of the trigger are not used: the ScaledObject says %d to %d", w.Minimum, w.Maximum)
	}
	if l.moved {
		add(RiskStart, "spec.ordinals.start of %s went from %d to %d", l.w.Name, l.last.Start, l.start)
	}
	if l.ask && l.liveErr != nil {
		add(RiskLive, "spec.replicas of %s cannot be confirmed, so no number falls and no release ends: %v", l.w.Name, l.liveErr)
	}
	if h := l.next.Hand; h != nil && l.now-h.At < handFor.Milliseconds() {
		add(RiskHand, "%s", h)
	}
	if s := scaleOf(l.w); l.w.HPA != nil && s.mode() == ToleranceBand {
		add(RiskBand, "the tolerance of HorizontalPodAutoscaler %s is %g up and %g down; set both to 0 (Kubernetes 1.35 or later)", l.w.HPA.Name, s.up, s.down)
	}
	return append(risks, l.w.Settings...)
}

// maximumIs names what the maximum was taken from.
func (l *law) maximumIs() string {
	if l.w != nil {
		return "maxReplicaCount"
	}
	return "maxInstances"
}
