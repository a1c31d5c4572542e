package main

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/roomscaler/roomscaler/broker/brokermetrics"
	"github.com/roomscaler/roomscaler/scaler"
)

var update = flag.Bool("update", false, "write generated documents anew")

// descForm takes a prometheus.Desc's String apart; it has no other way to be read.
var descForm = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "(.*)", unit: ".*", constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

func TestMetricsDocument(t *testing.T) {
	r := prometheus.NewRegistry()
	_, err := brokermetrics.New(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := brokermetrics.Build(r, "v"); err != nil {
		t.Fatal(err)
	}
	if err := r.Register(brokermetrics.PoolGauges("p", nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := scaler.New(scaler.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Registerer: r}); err != nil {
		t.Fatal(err)
	}
	descs := make(chan *prometheus.Desc)
	go func() {
		r.Describe(descs)
		close(descs)
	}()
	var rows []string
	for d := range descs {
		m := descForm.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("cannot read %s", d)
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |", m[1], kindOf(m[1]), labelsOf(m[3], m[4]), m[2]))
	}
	slices.Sort(rows)
	want := "# Metrics\n\nGenerated from the code by `go test ./cmd/roomscaler -run TestMetricsDocument -update`.\n\n" +
		"Every process serves its own at `/metrics` of its metrics port (9090). The broker has `roomscaler_broker_*`,\n`roomscaler_pool_*` and `roomscaler_instance_*`, the scaler `roomscaler_scaler_*`; beside them are Go's and the\nprocess's own. A number that is not known is absent, never 0. No label names a room.\n\n" +
		"| name | kind | labels | meaning |\n|---|---|---|---|\n" + strings.Join(rows, "\n") + "\n"
	path := filepath.Join("..", "..", "docs", "metrics.md")
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/metrics.md has drifted; run with -update (-code +document):\n%s", diff)
	}
}

func kindOf(name string) string {
	switch {
	case strings.HasSuffix(name, "_total"):
		return "counter"
	case strings.HasSuffix(name, "_duration_seconds"):
		return "histogram"
	}
	return "gauge"
}

func labelsOf(constant, variable string) string {
	var names []string
	for l := range strings.SplitSeq(constant, ",") {
		if name, _, ok := strings.Cut(l, "="); ok {
			names = append(names, name)
		}
	}
	for l := range strings.SplitSeq(variable, ",") {
		if l != "" {
			names = append(names, l)
		}
	}
	return strings.Join(names, ", ")
}
