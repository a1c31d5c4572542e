package scaler_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/roomscaler/roomscaler/scaler"
)

func TestParseTarget(t *testing.T) {
	ignore := cmpopts.IgnoreUnexported(scaler.Target{})
	t.Run("the defaults", func(t *testing.T) {
		got, err := scaler.ParseTarget(map[string]string{"pool": "janus", "targetSessionsPerInstance": "50", "scalerAddress": "scaler:6000", "enableTLS": "true", "unsafeSsl": "false"})
		if err != nil {
			t.Fatal(err)
		}
		want := scaler.Target{
			Pool: "janus", PerInstance: 50, Metric: scaler.MetricSessions, EmptyWhen: "sessions", Cooldown: 5 * time.Minute, DrainGrace: time.Hour,
			OnGraceExpired: "release", EmptyDwell: 30 * time.Second, ReleaseGuard: 90 * time.Second, StaleAfter: 30 * time.Second,
			StartTimeout: 180 * time.Second, MaxReplacements: 2, MinInstances: 1, MaxInstances: 100,
		}
		if diff := cmp.Diff(want, got, ignore); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("every key", func(t *testing.T) {
		got, err := scaler.ParseTarget(map[string]string{
			"poolFromEnv": "p", "targetSessionsPerInstance": " 8 ", "sessionMetric": "rooms", "emptyWhen": "rooms", "cooldownWindow": "1m30s", "drainGracePeriod": "2h",
			"onGraceExpired": "hold", "spareInstances": "12.5%", "emptyDwell": "0s", "releaseGuard": "1s", "staleAfter": "2s", "startTimeout": "3s",
			"maxReplacements": "0", "minInstances": "0", "maxInstances": "7", "scalerAddressFromEnv": "x:1",
		})
		if err != nil {
			t.Fatal(err)
		}
		want := scaler.Target{
			Pool: "p", PerInstance: 8, Metric: scaler.MetricRooms, EmptyWhen: "rooms", Cooldown: 90 * time.Second, DrainGrace: 2 * time.Hour, OnGraceExpired: "hold",
			Spare: scaler.Spare{InstancePercent: 12.5}, ReleaseGuard: time.Second, StaleAfter: 2 * time.Second, StartTimeout: 3 * time.Second, MaxInstances: 7,
		}
		if diff := cmp.Diff(want, got, ignore); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestParseTarget_Errors(t *testing.T) {
	long := strings.Repeat("9", 500)
	for _, c := range []struct {
		name, key, value string // the change to good metadata; value "-" removes the key
		want             string
	}{
		{"pool missing", "pool", "-", "metadata pool: is missing; give the broker's name of the pool"},
		{"pool bad", "pool", "Janus", `metadata pool: "Janus" is no pool name; use 1-63 of a-z, 0-9 and -`},
		{"pool from the environment bad", "poolFromEnv", "", "metadata poolFromEnv: is given beside pool; keep one of them"},
		{"target missing", "targetSessionsPerInstance", "-", "metadata targetSessionsPerInstance: is missing; give a whole number from 1 to 1000000"},
		{"target zero", "targetSessionsPerInstance", "0", `metadata targetSessionsPerInstance: "0" does not fit; give a whole number from 1 to 1000000`},
		{"target empty", "targetSessionsPerInstance", "", `metadata targetSessionsPerInstance: "" does not fit; give a whole number from 1 to 1000000`},
		{"target long", "targetSessionsPerInstance", long, `metadata targetSessionsPerInstance: "` + long[:40] + `…" does not fit; give a whole number from 1 to 1000000`},
		{"metric", "sessionMetric", "cpu", `metadata sessionMetric: "cpu" is none of the choices; give one of sessions, participants, rooms`},
		{"empty when", "emptyWhen", "never", `metadata emptyWhen: "never" is none of the choices; give one of sessions, rooms`},
		{"window without unit", "cooldownWindow", "300", `metadata cooldownWindow: "300" is no duration; write it with its unit, as 90s or 1h30m`},
		{"window negative", "cooldownWindow", "-1s", `metadata cooldownWindow: "-1s" does not fit; give 0s to 168h0m0s`},
		{"window too fine", "cooldownWindow", "1ns", `metadata cooldownWindow: "1ns" is too fine; give whole milliseconds`},
		{"guard longer than a broker takes", "releaseGuard", "31m", `metadata releaseGuard: "31m" does not fit; give 0s to 30m0s`},
		{"grace zero", "drainGracePeriod", "0s", `metadata drainGracePeriod: "0s" does not fit; give 1ms to 168h0m0s`},
		{"on grace expired", "onGraceExpired", "kill", `metadata onGraceExpired: "kill" is none of the choices; give one of release, hold`},
		{"spare", "spareSessions", "-5", `metadata spareSessions: "-5" does not fit; give a whole number from 0 to 100000000, or a share as 10%`},
		{"spare share", "spareInstances", "NaN%", `metadata spareInstances: "NaN%" is no share; give 0% to 1000%`},
		{"replacements", "maxReplacements", "many", `metadata maxReplacements: "many" does not fit; give a whole number from 0 to 99999`},
		{"bounds", "minInstances", "101", "metadata minInstances: 101 is above maxInstances 100; lower the one or raise the other"},
		{"a misspelt key", "cooldownwindow", "10m", "metadata cooldownwindow: is no key of this scaler (did you mean cooldownWindow?); remove it or correct its name"},
		{"a near miss", "coolDownWindows", "10m", "metadata coolDownWindows: is no key of this scaler (did you mean cooldownWindow?); remove it or correct its name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := map[string]string{"pool": "janus", "targetSessionsPerInstance": "50"}
			m[c.key] = c.value
			if c.value == "-" {
				delete(m, c.key)
			}
			_, err := scaler.ParseTarget(m)
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	t.Run("both spares", func(t *testing.T) {
		_, err := scaler.ParseTarget(map[string]string{"pool": "p", "targetSessionsPerInstance": "5", "spareSessions": "1", "spareInstances": "1"})
		if err == nil || !strings.Contains(err.Error(), "spareInstances: is given beside spareSessions") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a key nobody knows lists those that are known", func(t *testing.T) {
		_, err := scaler.ParseTarget(map[string]string{"pool": "p", "targetSessionsPerInstance": "5", "threshold": "1"})
		if err == nil || !strings.Contains(err.Error(), "threshold") || !strings.Contains(err.Error(), "it knows pool, targetSessionsPerInstance") {
			t.Errorf("got %v", err)
		}
	})
}

func FuzzParseTarget(f *testing.F) {
	f.Add("targetSessionsPerInstance", "50", "cooldownWindow", "5m")
	f.Add("spareInstances", "10%", "minInstancesFromEnv", "3")
	f.Add("spareSessions", "1e9%", "maxInstances", "-0")
	f.Add("\xff", "\xff", "pool", "a.b")
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2 string) {
		m := map[string]string{"pool": "janus", "targetSessionsPerInstance": "50"}
		m[k1], m[k2] = v1, v2
		got, err := scaler.ParseTarget(m)
		if err != nil {
			var e *scaler.TargetError
			if !errors.As(err, &e) || e.Key == "" || len(err.Error()) > 700 || strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("error %q", err)
			}
			return
		}
		if got.PerInstance < 1 || got.MinInstances > got.MaxInstances || got.MaxInstances < 1 || got.StaleAfter <= 0 || got.DrainGrace <= 0 {
			t.Fatalf("target %+v", got)
		}
		again, err := scaler.ParseTarget(got.Metadata())
		if err != nil || again != got {
			t.Fatalf("stored and read again: %+v, %v; was %+v", again, err, got)
		}
	})
}
