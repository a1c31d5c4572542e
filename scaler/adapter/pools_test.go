package adapter_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/scaler"
	"github.com/roomscaler/roomscaler/scaler/adapter"
)

func TestParsePools(t *testing.T) {
	pools, err := adapter.ParsePools([]byte(`
pools:
  - namespace: media
    pool: video
    targetSessionsPerInstance: 40
    cooldownWindow: 10m
    maxInstances: 12
  - namespace: calls
    pool: audio
    targetSessionsPerInstance: "200"
`))
	if err != nil {
		t.Fatal(err)
	}
	var got [][]any
	for _, p := range pools {
		got = append(got, []any{p.Namespace, p.Target.Pool, p.Target.PerInstance, p.Target.Cooldown, p.Target.MaxInstances})
	}
	want := [][]any{{"media", "video", 40, 10 * time.Minute, 12}, {"calls", "audio", 200, 5 * time.Minute, 100}}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Error(diff)
	}
}

func TestParsePools_Mistakes(t *testing.T) {
	for name, tc := range map[string]struct{ raw, want string }{
		"an empty file names no pool":                 {"", "names no pool"},
		"a list of none names no pool":                {"pools: []", "names no pool"},
		"a key outside of pools is unknown":           {"pool: video", "not understood"},
		"a pool needs a namespace":                    {"pools:\n  - {pool: video, targetSessionsPerInstance: 4}", "line 2: namespace"},
		"a pool needs what a trigger needs":           {"pools:\n  - {namespace: media, pool: video}", "targetSessionsPerInstance"},
		"a misspelt key is said with the one meant":   {"pools:\n  - {namespace: media, pool: video, targetSessionsPerInstance: 4, coolDownWindow: 5m}", "cooldownWindow"},
		"a value that is a list is refused":           {"pools:\n  - namespace: media\n    pool: [video]", "line 3: pool is no single value"},
		"a pool that is no mapping is refused":        {"pools:\n  - video", "line 2: is no pool"},
		"a pool twice is refused":                     {"pools:\n  - &p {namespace: media, pool: video, targetSessionsPerInstance: 4}\n  - *p", "stands there already"},
		"a pool in two namespaces is refused as well": {"pools:\n  - {namespace: a, pool: video, targetSessionsPerInstance: 4}\n  - {namespace: b, pool: video, targetSessionsPerInstance: 4}", "line 3"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := adapter.ParsePools([]byte(tc.raw))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want something about %q", err, tc.want)
			}
			var (
				config *adapter.ConfigError
				target *scaler.TargetError
			)
			if !errors.As(err, &config) && !errors.As(err, &target) {
				t.Errorf("%T is no error of the contract", err)
			}
		})
	}
}
