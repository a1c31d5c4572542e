package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/scaler"
)

// brokerWith answers with these facts of pool janus.
func brokerWith(t *testing.T, f brokerapi.PoolFacts) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/pools/janus" {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			json.NewEncoder(w).Encode(brokerapi.Problem{Code: brokerapi.CodePoolNotFound, Title: "there is no such pool", Status: http.StatusNotFound})
			return
		}
		json.NewEncoder(w).Encode(f)
	}))
	t.Cleanup(s.Close)
	return s
}

// decided has a stored number.
func decided(t *testing.T) brokerapi.PoolFacts {
	t.Helper()
	target, err := scaler.ParseTarget(map[string]string{"pool": "janus", "targetSessionsPerInstance": "50"})
	if err != nil {
		t.Fatal(err)
	}
	f := brokerapi.PoolFacts{Pool: "janus", Term: "t", Phase: brokerapi.PhaseReady, NowMS: 10_000_000, Queue: brokerapi.Queue{Rooms: 1, Participants: 120}}
	d := scaler.Decide(scaler.Input{Facts: f, Ref: scaler.Ref{Namespace: "media", Name: "janus"}, Target: target})
	f.Plan = &brokerapi.Plan{Version: 1, Desired: d.Put.Desired, Body: d.Put.Body}
	return f
}

func TestExplain(t *testing.T) {
	f := decided(t)
	want, err := scaler.Explain(f)
	if err != nil {
		t.Fatal(err)
	}
	s := brokerWith(t, f)
	explain := func(args ...string) (int, string, string) {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append([]string{"explain", "--broker", s.URL, "--pool", "janus"}, args...), nil, &stdout, &stderr)
		return code, stdout.String(), stderr.String()
	}
	t.Run("writes text for a person", func(t *testing.T) {
		code, out, _ := explain()
		if code != 0 || out != want.String() || !strings.HasPrefix(out, "pool janus: 3 instances") {
			t.Errorf("code %d:\n%s", code, out)
		}
	})
	t.Run("writes JSON for a program", func(t *testing.T) {
		code, out, _ := explain("-o", "json")
		var got scaler.Explanation
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 {
			t.Fatalf("code %d, %v:\n%s", code, err, out)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"another form":       {[]string{"-o", "yaml"}, exitUsage, `--output: "yaml" is no form; give text or json`},
		"a bad name":         {[]string{"--pool", "JANUS"}, exitUsage, "--pool: "},
		"an unknown pool":    {[]string{"--pool", "other"}, exitFailure, "fetch the facts of pool other: pool_not_found"},
		"a broker that left": {[]string{"--broker", "http://127.0.0.1:1"}, exitFailure, "fetch the facts of pool janus: "},
	} {
		t.Run(name+" is one line with the reason", func(t *testing.T) {
			code, out, errs := explain(c.args...)
			if code != c.code || out != "" || !strings.HasPrefix(errs, "roomscaler: "+c.want) || strings.Count(errs, "\n") != 1 {
				t.Errorf("code %d, %q, %q", code, out, errs)
			}
		})
	}
}

func TestExplainHandler(t *testing.T) {
	f := decided(t)
	client, err := brokerapi.NewClient(brokerWith(t, f).URL, nil, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newScaler(client, slog.New(slog.DiscardHandler), nil, &tlsFiles{}, leastConnectionAge, false)
	if err != nil {
		t.Fatal(err)
	}
	registry, err := newRegistry()
	if err != nil {
		t.Fatal(err)
	}
	h := s.metricsPort(registry)
	get := func(query string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/explain"+query, nil))
		b, err := io.ReadAll(w.Result().Body)
		if err != nil {
			t.Fatal(err)
		}
		return w.Code, string(b)
	}
	code, body := get("?pool=janus")
	var got scaler.Explanation
	if err := json.Unmarshal([]byte(body), &got); err != nil || code != http.StatusOK || got.Desired != 3 || got.Pool != "janus" {
		t.Errorf("got %d %s", code, body)
	}
	for query, want := range map[string]int{"": http.StatusBadRequest, "?pool=A/B": http.StatusBadRequest, "?pool=other": http.StatusServiceUnavailable} {
		if code, body := get(query); code != want || strings.Count(body, "\n") != 1 {
			t.Errorf("%q: got %d %q, want %d", query, code, body, want)
		}
	}
}
