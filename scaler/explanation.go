package scaler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

// Explanation tells how the stored number of a pool came about. All of it is in the stored plan and the facts beside it, so
// whoever can read the pool's facts at a broker can explain its number. Ages are in milliseconds.
type Explanation struct {
	Pool         string            `json:"pool"`
	ScaledObject Ref               `json:"scaled_object"`
	Version      int64             `json:"version"` // of the plan
	AgeMS        int64             `json:"age_ms"`  // of the facts that were decided on
	Desired      int               `json:"desired"`
	Why          Why               `json:"why"`
	Meaning      string            `json:"meaning"` // of the rule
	Steps        []Step            `json:"steps"`   // of the law, in order
	Answer       string            `json:"answer"`  // what KEDA is answered
	Changes      []string          `json:"changes"` // what would change the number
	Highest      []Candidate       `json:"highest"` // the instances that would go first, the highest first
	Kubernetes   *Scaling          `json:"kubernetes,omitempty"`
	Hand         *Hand             `json:"hand,omitempty"` // the last change past the scaler
	HandAgoMS    int64             `json:"hand_ago_ms,omitempty"`
	Risks        []Risk            `json:"risks"`
	Past         []PastDecision    `json:"past"` // the latest last
	Metadata     map[string]string `json:"metadata"`
}

// Step is a number of the law.
type Step struct {
	Name  string `json:"name"`
	Value int    `json:"value"`
	Text  string `json:"text"`
}

// Candidate is an instance that a lower number would take away.
type Candidate struct {
	Name     string `json:"name"`
	State    string `json:"state"`
	Sessions *int   `json:"sessions,omitempty"`
	Rooms    int    `json:"rooms"`
	MayGo    bool   `json:"may_go"`
	Why      string `json:"why,omitempty"` // it may not
}

// PastDecision is an earlier decision.
type PastDecision struct {
	AgoMS int64 `json:"ago_ms"`
	Past
}

// maxCandidates bounds an explanation.
const maxCandidates = 10

// Explain tells how the stored number of a pool came about. It is an error if none is stored, or
// none that this program can read.
func Explain(f brokerapi.PoolFacts) (Explanation, error) {
	switch {
	case f.Phase != brokerapi.PhaseReady:
		return Explanation{}, fmt.Errorf("pool %s has no number: %s", f.Pool, HoldRebuilding)
	case f.Plan == nil || f.Plan.Version == 0:
		return Explanation{}, fmt.Errorf("pool %s has no number: no scaler has stored one yet", f.Pool)
	}
	r, err := readRecord(f.Plan, f.NowMS)
	if err != nil {
		return Explanation{}, fmt.Errorf("pool %s: %w", f.Pool, err)
	}
	w := r.Why
	e := Explanation{
		Pool: f.Pool, ScaledObject: r.Ref, Version: f.Plan.Version, AgeMS: f.NowMS - r.At, Desired: w.Desired, Why: w, Meaning: meaningOf(w.Rule),
		Steps: stepsOf(r), Kubernetes: r.Scale, Hand: r.Hand, Risks: r.Risks, Metadata: r.Metadata,
	}
	e.Answer = fmt.Sprintf("%d", w.Desired)
	if v, err := r.Scale.scale(w.Maximum).value(w.Desired); err != nil {
		e.Answer = "UNAVAILABLE: " + err.Error()
	} else if v != float64(w.Desired) {
		e.Answer = fmt.Sprintf("%.3f, which leads to %d within the autoscaler's tolerance", v, w.Desired)
	}
	if h := r.hpa(); h != nil && w.Desired > h.Maximum {
		e.Answer += fmt.Sprintf("; the autoscaler cuts it off at its maximum of %d", h.Maximum)
	}
	if r.Hand != nil {
		e.HandAgoMS = f.NowMS - r.Hand.At
	}
	e.Highest = candidatesOf(f, r)
	e.Changes = changesOf(f, r, e.Highest)
	for _, p := range r.Past {
		e.Past = append(e.Past, PastDecision{f.NowMS - p.At, p})
	}
	return e, nil
}

// Explain asks the broker for the pool's facts and explains its number.
func (s *Scaler) Explain(ctx context.Context, pool string) (Explanation, error) {
	f, err := s.source.Facts(ctx, pool)
	if err != nil {
		return Explanation{}, fmt.Errorf("fetch the facts of pool %s: %w", pool, err)
	}
	return Explain(f)
}

func (r *Record) hpa() *Autoscaler {
	if r.Scale == nil {
		return nil
	}
	return r.Scale.HPA
}

func meaningOf(r Rule) string {
	switch r {
	case RuleRise:
		return "the load needs more instances"
	case RuleAdopt:
		return "instances or pods stand above the number that nobody has released: they are taken in first"
	case RuleSteady:
		return "the number is what the load needs"
	case RuleCooldown:
		return "the load needs fewer, but not for long enough"
	case RuleFloor:
		return "the load needs fewer, but the highest instance may not go yet"
	case RuleMaximum:
		return "the load needs more than may be"
	case RuleLower:
		return "the highest instances may go, and are released"
	case RuleBeyond:
		return "the load needs more, and the autoscaler's tolerance lets only a larger step through"
	case RuleBatch:
		return "the highest instances may go, but too few for a step that the autoscaler's tolerance lets through"
	case RuleUnread:
		return "the highest instances may go, but spec.replicas could not be confirmed"
	}
	return string(r)
}

// stepsOf walks through the law.
func stepsOf(r *Record) []Step {
	w := r.Why
	window, _ := time.ParseDuration(r.Metadata["cooldownWindow"])
	bounds := "minInstances and maxInstances"
	if r.Scale != nil {
		bounds = "minReplicaCount and maxReplicaCount of the ScaledObject"
	}
	floor := "nothing holds the number up"
	switch {
	case w.FloorBy != "":
		floor = fmt.Sprintf("%s is the highest that may not go: %s", w.FloorBy, w.FloorWhy)
	case w.FloorWhy != "":
		floor = w.FloorWhy
	}
	steps := []Step{
		{"previous", w.Previous, "the number stored before"},
		{"load", w.Load, fmt.Sprintf("in %s, expected ones included; of %d instances nothing fresh is known", cmp.Or(r.Metadata["sessionMetric"], string(MetricSessions)), w.Unknown)},
		{"queued", w.Queued, "asked for and found no place"},
		{"spare", w.Spare, "kept free"},
		{"per_instance", w.PerInstance, "targetSessionsPerInstance"},
		{"d_load", w.Dload, fmt.Sprintf("instances that hold %d + %d + %d; %d that do not work are made up for, %d that do not answer yet count", w.Load, w.Queued, w.Spare, w.Replaced, w.Coming)},
		{"d_slot", w.Dslot, fmt.Sprintf("instances that have %d places free", w.Queued+w.Spare)},
		{"minimum", w.Minimum, bounds},
		{"d_now", w.Dnow, "the greatest of the last three"},
		{"d_cool", w.Dcool, fmt.Sprintf("the greatest d_now of the last %s; what was not observed counts as the number then", window)},
		{"floor", w.Floor, floor},
		{"maximum", w.Maximum, bounds},
	}
	return append(steps, Step{"desired", w.Desired, outcomeOf(w)})
}

// outcomeOf says how the last step came out.
func outcomeOf(w Why) string {
	switch w.Rule {
	case RuleRise, RuleMaximum:
		return fmt.Sprintf("d_now, at most the maximum; never below %d by want of places", w.Previous)
	case RuleAdopt:
		return "the floor is above the previous number"
	case RuleBeyond:
		return "the first number that the autoscaler can be brought to"
	case RuleBatch, RuleUnread:
		return "the previous number stays"
	}
	return "d_cool within the bounds, at least the floor, at most the previous number"
}

// candidatesOf lists the highest instances in range.
func candidatesOf(f brokerapi.PoolFacts, r *Record) []Candidate {
	t, err := ParseTarget(r.Metadata)
	if err != nil {
		return nil
	}
	in := slices.Clone(f.Instances)
	slices.SortStableFunc(in, func(a, b brokerapi.Instance) int { return cmp.Compare(b.Ordinal, a.Ordinal) })
	var list []Candidate
	for i := range in {
		if in[i].State == stateLost {
			continue
		}
		if len(list) == maxCandidates || in[i].Ordinal-r.Start < min(r.Why.Dnow, r.Why.Desired-1) {
			break
		}
		c := Candidate{Name: in[i].Name, State: in[i].State, Sessions: in[i].Sessions, Rooms: in[i].RoomsLeft}
		if in[i].State == stateReleased {
			c.MayGo, c.Why = true, "released"
		} else {
			may := removable(&in[i], t)
			c.MayGo, c.Why = may.ok, may.why
		}
		list = append(list, c)
	}
	return list
}

// changesOf says what would make the number another one.
func changesOf(f brokerapi.PoolFacts, r *Record, highest []Candidate) []string {
	w := r.Why
	var list []string
	add := func(form string, args ...any) { list = append(list, fmt.Sprintf(form, args...)) }
	switch {
	case w.Dnow > w.Maximum:
		add("it rises when the maximum of %d is raised", w.Maximum)
	case w.Desired == w.Maximum:
		add("it does not rise: it is at the maximum of %d", w.Maximum)
	default:
		add("it rises when more than %d further sessions come", w.Fits)
	}
	window, _ := time.ParseDuration(r.Metadata["cooldownWindow"])
	switch {
	case w.Desired <= w.Minimum:
		add("it does not fall: it is at the minimum of %d", w.Minimum)
	case w.Blind:
		add("it falls only when instances answer again: no instance in range has fresh data")
	case w.Rule == RuleUnread:
		add("it falls when the API server tells spec.replicas")
	case w.Rule == RuleBatch:
		s := r.Scale.scale(w.Maximum)
		n := w.Desired - 1
		for n > 0 {
			if _, ok := s.reaches(n); ok {
				break
			}
			n--
		}
		add("it falls when instances down to %d may go, the first number below %d that the autoscaler's tolerance lets through", n, w.Previous)
	case w.Dnow >= w.Desired:
		add("it falls when the load needs fewer than %d instances for %s", w.Desired, window)
	default:
		if left, n := coolFor(r, f.NowMS, window); left > 0 {
			add("it falls no earlier than in %s: until then the need of %d instances counts", left.Round(time.Second), n)
		}
		known := false
		for _, c := range highest {
			known = known || c.Name == w.FloorBy
		}
		if w.FloorBy != "" && !known {
			add("it falls when %s may go: %s", w.FloorBy, w.FloorWhy)
			return list
		}
		for _, c := range highest {
			if !c.MayGo {
				add("it falls when %s may go: %s (%s)", c.Name, c.Why, counted(c.Rooms, "room"))
				return list
			}
		}
	}
	return list
}

// coolFor returns how long the history keeps the number from falling, and by which need.
func coolFor(r *Record, now int64, window time.Duration) (time.Duration, int) {
	for i := len(r.Peaks) - 1; i >= 0; i-- {
		if p := r.Peaks[i]; p.N >= r.Why.Desired {
			return time.Duration(p.At-now)*time.Millisecond + window, p.N
		}
	}
	return 0, 0
}
