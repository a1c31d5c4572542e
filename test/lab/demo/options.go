// Package demo runs the product as a cluster would and shows what happens: media servers under a supervisor, brokers, a
// scaler, an autoscaler's loop, and people who come and go.
package demo

import (
	"fmt"
	"time"

	"github.com/roomscaler/roomscaler/test/lab/hpa"
)

// Media says which media servers run.
type Media string

// The choices of media servers.
const (
	Auto      Media = "auto" // real if installed or installable, else simulated
	Real      Media = "real"
	Simulated Media = "simulated"
)

// Options are the demonstration's flags.
type Options struct {
	Seed      uint64
	Scale     float64 // stretches the load's times; 1 takes about two and a half minutes
	Rooms     int     // open at the peak
	Compare   bool    // run the naive scaler beside ours
	Media     Media
	Report    string  // file of the report; "" = none
	KeepLogs  string  // folder that keeps all logs; "" = only after a failure
	Tolerance float64 // of the HPA, both ways
	Program   string  // a built roomscaler; "" = build it from the source around the working folder
}

// DefaultOptions returns the defaults of the flags.
func DefaultOptions() Options {
	return Options{Seed: 1, Scale: 1, Rooms: 18, Media: Auto, Report: "out/demo.html"}
}

// Validate reports the first flag that is wrong, with the remedy.
func (o Options) Validate() error {
	switch {
	case o.Scale < 0.5 || o.Scale > 20:
		return fmt.Errorf("--duration-scale: %g is out of range; give 0.5 to 20", o.Scale)
	case o.Rooms < 12 || o.Rooms > 400:
		return fmt.Errorf("--rooms: %d is out of range; give 12 to 400", o.Rooms)
	case o.Media != Auto && o.Media != Real && o.Media != Simulated:
		return fmt.Errorf("--janus: %q is none of auto, real, simulated", o.Media)
	case o.Tolerance < 0 || o.Tolerance >= 1:
		return fmt.Errorf("--tolerance: %g is out of range; give 0 to below 1 (a cluster's default is 0.1)", o.Tolerance)
	}
	return nil
}

const (
	pool         = "demo"
	service      = "janus.demo.svc.cluster.local"
	base         = 2  // instances at the start and at the end
	most         = 12 // instances at most
	adminSecret  = "demo-admin-secret"
	adminKey     = "demo-admin-key"
	peopleInRoom = 3  // on average, as the load makes them
	spread       = 54 // the peak's sessions fill spread/10 instances
	syncEvery    = 2 * time.Second
	askTimeout   = 2 * time.Second // of a sync; cut as the API server's aggregation cuts it after a minute
	releaseGuard = 4 * time.Second // an answer has its effect within askTimeout, or never
	podGrace     = 10 * time.Minute
	hookGrace    = 9*time.Minute + 30*time.Second
)

// quiet is the number of sessions at the start and at the end: with what is kept spare it leaves two instances
// some room.
func (o Options) quiet() int { return o.target() * 6 / 10 }

// peak is the number of sessions at the peak, target that of an instance.
func (o Options) peak() int   { return o.Rooms * peopleInRoom }
func (o Options) target() int { return max(1, (o.peak()*10+spread-1)/spread) }

// cooldown is how long load must stay low before anybody scales in.
func (o Options) cooldown() time.Duration { return o.stretched(15 * time.Second) }

func (o Options) stretched(d time.Duration) time.Duration {
	return time.Duration(float64(d) * o.Scale).Round(100 * time.Millisecond)
}

// metadata is the ScaledObject's trigger, with windows short enough to watch.
func (o Options) metadata() map[string]string {
	return map[string]string{
		"pool":                      pool,
		"targetSessionsPerInstance": fmt.Sprint(o.target()),
		"cooldownWindow":            o.cooldown().String(),
		"spareSessions":             fmt.Sprint(o.target() / 2),
		"drainGracePeriod":          podGrace.String(),
		"onGraceExpired":            "hold",
		"emptyDwell":                "3s",
		"releaseGuard":              releaseGuard.String(),
		"staleAfter":                "10s",
		"startTimeout":              "30s",
		"minInstances":              fmt.Sprint(base),
		"maxInstances":              fmt.Sprint(most),
	}
}

// autoscaler is the HPA object. Both runs get the same but for the window: our scaler has its cool-down itself, the
// naive one needs the HPA's.
func (o Options) autoscaler(window time.Duration) hpa.Config {
	return hpa.Config{
		Min: base, Max: most, Tolerance: hpa.Tolerance{Up: o.Tolerance, Down: o.Tolerance},
		Up:   hpa.Rules{Policies: []hpa.Policy{{Type: hpa.Percent, Value: 100, Period: syncEvery}, {Type: hpa.Pods, Value: 4, Period: syncEvery}}},
		Down: hpa.Rules{Window: window, Policies: []hpa.Policy{{Type: hpa.Pods, Value: 4, Period: syncEvery}}},
	}
}
