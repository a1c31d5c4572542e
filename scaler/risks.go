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
		add(RiskMaximum, "the load needs %d instances, maxInstances is %d", w.Dnow, w.Maximum)
	}
	if w.Desired > w.Maximum {
		add(RiskAbove, "%d instances stay because rooms are on them, maxInstances is %d", w.Desired, w.Maximum)
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
		if in := &l.f.Instances[i]; occupied[in.Name] {
			add(RiskGrace, "%s is let go with %d rooms after %s", in.Name, in.RoomsLeft, l.t.DrainGrace)
		}
	}
	for _, name := range l.refused {
		add(RiskRefused, "the store does not release %s now", name)
	}
	return risks
}
