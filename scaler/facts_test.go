package scaler_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/scaler"
)

const now = int64(10_000_000) // on the pool's clock

var object = scaler.Ref{Namespace: "media", Name: "janus"}

func ptr[T any](v T) *T { return &v }

// target is the one of the worked examples, changed by key, value pairs.
func target(t testing.TB, pairs ...string) scaler.Target {
	t.Helper()
	m := map[string]string{
		"pool": "janus", "targetSessionsPerInstance": "50", "spareSessions": "25", "emptyDwell": "60s",
		"cooldownWindow": "10m", "minInstances": "2", "maxInstances": "60",
	}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	got, err := scaler.ParseTarget(m)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func name(i int) string { return fmt.Sprintf("janus-%d", i) }

// instance is a healthy one with so many sessions.
func instance(i, sessions int) brokerapi.Instance {
	return brokerapi.Instance{
		Name: name(i), Ordinal: i, Incarnation: "life-" + name(i), State: "ready", Sessions: ptr(sessions),
		Participants: ptr(sessions), Rooms: ptr((sessions + 3) / 4), RoomsLeft: (sessions + 3) / 4, AgeMS: ptr(int64(1000)), KnownMS: 3_600_000,
	}
}

// starting is an instance that is known and has never answered.
func starting(i int, known time.Duration) brokerapi.Instance {
	return brokerapi.Instance{Name: name(i), Ordinal: i, State: "starting", KnownMS: known.Milliseconds(), Reason: "refused"}
}

func marked(in brokerapi.Instance, owner string, age time.Duration, remaining *int64) brokerapi.Instance {
	in.Marks = append(slices.Clone(in.Marks), brokerapi.Mark{Owner: owner, AgeMS: age.Milliseconds(), RemainingMS: remaining})
	if in.State == "ready" {
		in.State = "cordoned"
	}
	return in
}

// vacated is an instance that the scaler has marked and that has been empty since.
func vacated(i int, since time.Duration) brokerapi.Instance {
	in := marked(instance(i, 0), "scaler", since+time.Minute, nil)
	in.EmptyMS = ptr(since.Milliseconds())
	return in
}

func released(in brokerapi.Instance) brokerapi.Instance {
	in.State = "released"
	return in
}

func row(n, sessions int) []brokerapi.Instance {
	var out []brokerapi.Instance
	for i := range n {
		out = append(out, instance(i, sessions))
	}
	return out
}

// record is what a planner left a second ago, when the stored number had long been r
// and the load had long been low.
func record(t testing.TB, tg scaler.Target, r int) scaler.Record {
	t.Helper()
	return scaler.Record{
		Format: 1, At: now - 1000, Ref: object, CalledAt: now - 1000, Metadata: tg.Metadata(),
		Lows: []scaler.Sample{{At: now - 1000, N: r}}, Lowered: -1,
	}
}

// facts has a stored number r with the record, and the instances.
func facts(t testing.TB, r int, rec scaler.Record, tg scaler.Target, instances ...brokerapi.Instance) brokerapi.PoolFacts {
	t.Helper()
	body, err := json.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	return brokerapi.PoolFacts{
		Pool: "janus", Term: "t1", Phase: brokerapi.PhaseReady, NowMS: now, Instances: instances, EmptyWhen: tg.EmptyWhen,
		Plan: &brokerapi.Plan{Version: 7, Desired: r, Target: tg.PerInstance, EmptyWhen: tg.EmptyWhen, AgeMS: 1000, Body: body},
	}
}

func decide(f brokerapi.PoolFacts, tg scaler.Target) scaler.Decision {
	return scaler.Decide(scaler.Input{Facts: f, Ref: object, Target: tg})
}

// apply does to the facts what carrying out the decision does at a broker, at the same moment.
func apply(f brokerapi.PoolFacts, d scaler.Decision) brokerapi.PoolFacts {
	f.Instances = slices.Clone(f.Instances)
	for i := range f.Instances {
		in := &f.Instances[i]
		if slices.Contains(d.Cordon, in.Name) {
			*in = marked(*in, "scaler", 0, nil)
		}
		if slices.Contains(d.Uncordon, in.Name) {
			in.Marks = slices.DeleteFunc(slices.Clone(in.Marks), func(m brokerapi.Mark) bool { return m.Owner == "scaler" })
			in.EmptyMS = nil
		}
		if !d.Store {
			continue
		}
		if slices.ContainsFunc(d.Put.Seal, func(s brokerapi.Seal) bool { return s.Instance == in.Name }) {
			in.State = "released"
		}
		if slices.Contains(d.Put.Unseal, in.Name) {
			in.State = "cordoned"
		}
	}
	if d.Store {
		f.Plan = &brokerapi.Plan{
			Version: d.IfVersion + 1, Desired: d.Put.Desired, Target: d.Put.Target, EmptyWhen: d.Put.EmptyWhen, Body: d.Put.Body,
		}
	}
	return f
}

// later lets time pass without anything happening.
func later(f brokerapi.PoolFacts, by time.Duration) brokerapi.PoolFacts {
	ms := by.Milliseconds()
	f.NowMS += ms
	p := *f.Plan
	p.AgeMS += ms
	f.Plan = &p
	f.Instances = slices.Clone(f.Instances)
	for i := range f.Instances {
		in := &f.Instances[i]
		in.KnownMS += ms
		in.Marks = slices.Clone(in.Marks)
		for j := range in.Marks {
			in.Marks[j].AgeMS += ms
		}
		if in.EmptyMS != nil {
			in.EmptyMS = ptr(*in.EmptyMS + ms)
		}
	}
	return f
}

func readRecord(t testing.TB, body []byte) scaler.Record {
	t.Helper()
	var r scaler.Record
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	return r
}
