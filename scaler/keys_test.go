package scaler_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/scaler"
)

// withKey is good metadata with one key given.
func withKey(k, v string) map[string]string {
	m := map[string]string{"pool": "janus", "targetSessionsPerInstance": "50"}
	m[k] = v
	return m
}

// TestKeys holds the description of the keys to what ParseTarget does.
func TestKeys(t *testing.T) {
	plain, err := scaler.ParseTarget(withKey("pool", "janus"))
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range scaler.Keys() {
		t.Run(k.Name, func(t *testing.T) {
			got, err := scaler.ParseTarget(withKey(k.Name, k.Example))
			if err != nil {
				t.Fatalf("the example: %v", err)
			}
			if k.Name != "pool" && k.Name != "targetSessionsPerInstance" && cmp.Equal(got.Metadata(), plain.Metadata()) {
				t.Error("the example changes nothing")
			}
			if k.Default != "" && !strings.HasPrefix(k.Name, "spare") {
				got, err := scaler.ParseTarget(withKey(k.Name, k.Default))
				want, have := plain.Metadata(), got.Metadata()
				for _, bound := range []string{"minInstances", "maxInstances"} { // told only where they are given
					delete(have, bound)
				}
				if diff := cmp.Diff(want, have); err != nil || diff != "" {
					t.Errorf("the default is not %s: %v (-without +with):\n%s", k.Default, err, diff)
				}
			}
			var good, bad []string
			switch {
			case k.High != "":
				good, bad = []string{k.Low, k.High}, []string{"-1", "-1s", "x", "", k.High + "0", k.High + "1ms", "1e3", "NaN", "Inf", "9999999999999999999999"}
			case strings.Contains(k.Low, ", "):
				good, bad = strings.Split(k.Low, ", "), []string{"", "x", k.Low, strings.ToUpper(k.Example)}
			default:
				good, bad = []string{"a", "a-1"}, []string{"", "A", "-a", strings.Repeat("a", 64), "a.b", "a\nb"}
			}
			for _, v := range good {
				m := withKey(k.Name, v)
				if k.Name == "minInstances" && v == k.High {
					m["maxInstances"] = v // they are checked against each other
				}
				if k.Name == "maxInstances" {
					m["minInstances"] = "0"
				}
				if _, err := scaler.ParseTarget(m); err != nil {
					t.Errorf("%q is refused: %v", v, err)
				}
			}
			for _, v := range bad {
				_, err := scaler.ParseTarget(withKey(k.Name, v))
				var wrong *scaler.TargetError
				if !errors.As(err, &wrong) || wrong.Key != k.Name || strings.Contains(err.Error(), "\n") {
					t.Errorf("%q: got %v, want an error in one line that names the key", v, err)
				}
			}
		})
	}
}

// TestDocs_scaler: the table in docs/scaler.md is that of the keys.
func TestDocs_scaler(t *testing.T) {
	const begin, end = "<!-- keys: written by go test ./scaler -run TestDocs_scaler -update -->\n", "<!-- end of keys -->"
	path := filepath.Join("..", "docs", "scaler.md")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("docs/scaler.md has lost the marks around its table of keys")
	}
	var table strings.Builder
	table.WriteString("\n| key | default | values | meaning |\n|---|---|---|---|\n")
	for _, k := range scaler.Keys() {
		values := k.Low
		if k.High != "" {
			values += " to " + k.High
		}
		def := ""
		if k.Default != "" {
			def = "`" + k.Default + "`"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", k.Name, def, values, k.Meaning)
	}
	want := head + begin + table.String() + "\n" + end + tail
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Errorf("docs/scaler.md has drifted; run with -update (-want +got):\n%s", diff)
	}
}
