package scaler

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
)

// codesOf returns the set of the risks' codes.
func codesOf(risks []Risk) map[string]bool {
	set := make(map[string]bool, len(risks))
	for _, r := range risks {
		set[r.Code] = true
	}
	return set
}

// tell logs what is new in a decision, and writes Events for it. Only the replica that has stored it does, so each is
// told once.
func (p *planner) tell(log *slog.Logger, pool string, d Decision) {
	event := func(Event) {}
	if p.cluster != nil {
		event = func(e Event) { p.cluster.Event(p.ref, e) }
	}
	if d.Desired != d.Why.Previous {
		log.Info("number of instances decided", "pool", pool, "desired", d.Desired, "previous", d.Why.Previous, "why", d.Why.String())
		event(Event{Reason: "InstancesDecided", Note: d.Why.String()})
	}
	for _, r := range d.News {
		log.Warn("risk", "pool", pool, "code", r.Code, "detail", r.Detail)
		event(Event{Warning: true, Reason: reasonOf(r.Code), Note: r.Detail})
	}
}

// reasonOf writes a risk's code as Events write reasons.
func reasonOf(code string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(code, "_") {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

// newRisks returns the risks that the last record did not tell of. That an instance goes with its rooms is new each time.
func (l *law) newRisks(risks []Risk) []Risk {
	before := map[string]bool{}
	if l.last != nil {
		before = codesOf(l.last.Risks)
		if h := l.next.Hand; h != nil && (l.last.Hand == nil || h.At > l.last.Hand.At) {
			delete(before, RiskHand)
		}
	}
	var fresh []Risk
	for _, r := range risks {
		if !before[r.Code] || r.Code == RiskGrace || r.Code == RiskEnded {
			fresh = append(fresh, r)
		}
	}
	return fresh
}

// write returns the record as the body of a plan.
func (r *Record) write() json.RawMessage {
	body, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("a record of numbers and strings cannot be written: %v", err))
	}
	return body
}
