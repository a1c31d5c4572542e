package scaler_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/scaler"
)

var update = flag.Bool("update", false, "write golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "explain", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s; run with -update if that is meant (-want +got):\n%s", path, diff)
	}
}

// explained carries a decision out and explains it 2 s later.
func explained(t *testing.T, f brokerapi.PoolFacts, d scaler.Decision) scaler.Explanation {
	t.Helper()
	e, err := scaler.Explain(later(apply(f, d), 2*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestG7_Explain: a person can read how each worked example came out, with tolerance 0 and with the default one.
func TestG7_Explain(t *testing.T) {
	for _, e := range examples() {
		number, _, _ := strings.Cut(e.name, ":")
		t.Run(e.name, func(t *testing.T) {
			f, tg, w := e.onKubernetes(t)
			golden(t, number, explained(t, f, decideOn(f, tg, w)).String())
			w.HPA.ScaleUp, w.HPA.ScaleIn = 0.1, 0.1
			golden(t, number+"-tolerance", explained(t, f, decideOn(f, tg, w)).String())
		})
	}
	t.Run("without Kubernetes", func(t *testing.T) {
		tg := target(t)
		f := facts(t, 10, record(t, tg, 10), tg, row(10, 40)...)
		golden(t, "no-kubernetes", explained(t, f, decide(f, tg)).String())
	})
	t.Run("after a hand, with earlier decisions and trouble", func(t *testing.T) {
		tg := target(t)
		f := facts(t, 4, record(t, tg, 4), tg, row(4, 30)...)
		f = later(apply(f, decideOn(f, tg, workload(4, nil))), 5*time.Second)
		hand := workload(6, func(w *scaler.Workload) {
			w.HPA.Trouble = "ScalingActive is False: FailedGetExternalMetric: unable to get external metric"
			w.HPA.WindowMS = 60_000
			w.Settings = []scaler.Risk{{Code: scaler.RiskOrderedReady, Detail: "podManagementPolicy of StatefulSet janus is OrderedReady"}}
		})
		golden(t, "by-hand", explained(t, f, decideOn(f, tg, hand)).String())
	})
}

func TestG7_ExplainAsJSON(t *testing.T) {
	e := examples()[0]
	f, tg, w := e.onKubernetes(t)
	got := explained(t, f, decideOn(f, tg, w))
	var back scaler.Explanation
	if err := json.Unmarshal([]byte(mustJSON(t, got)), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, back); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
}

func TestExplain_NoNumber(t *testing.T) {
	tg := target(t)
	good := facts(t, 4, record(t, tg, 4), tg, row(4, 30)...)
	for want, edit := range map[string]func(*brokerapi.PoolFacts){
		"no scaler has stored one yet":            func(f *brokerapi.PoolFacts) { f.Plan = nil },
		"the broker's directory is being rebuilt": func(f *brokerapi.PoolFacts) { f.Phase = brokerapi.PhaseRebuilding },
		"read the record of plan 7":               func(f *brokerapi.PoolFacts) { f.Plan.Body = json.RawMessage(`[]`) },
	} {
		f := good
		p := *f.Plan
		f.Plan = &p
		edit(&f)
		if _, err := scaler.Explain(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestG7_LastHundred: the last hundred decisions are kept, in a record that stays small.
func TestG7_LastHundred(t *testing.T) {
	tg := target(t, "cooldownWindow", "0s", "maxInstances", "1000")
	f := facts(t, 10, record(t, tg, 10), tg, row(10, 40)...)
	for i := range 300 {
		f.Queue.Participants = 50 * i
		f = later(apply(f, decide(f, tg)), time.Second)
	}
	e, err := scaler.Explain(f)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(e.Past); n != 100 {
		t.Errorf("%d decisions, want 100", n)
	}
	if last := e.Past[99]; last.To != e.Desired && last.Rule != e.Why.Rule {
		t.Errorf("the last is %+v, want the present one", last)
	}
	if n := len(f.Plan.Body); n > 24_000 {
		t.Errorf("the record has %d bytes", n)
	}
}
