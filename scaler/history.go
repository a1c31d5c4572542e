package scaler

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

// ServeTTL is how long a stored decision may be repeated after the fetch of it began.
const ServeTTL = 10 * time.Second

const (
	recordFormat = 1
	// recordEvery is how often a decision that changes nothing is stored all the
	// same, so that the next planner knows that somebody looked.
	recordEvery = 5 * time.Second
	// undecided is the longest time between two records that still counts as observed.
	undecided = 3 * recordEvery
	// takeover is how long a ScaledObject must be silent before another one may have its pool.
	takeover = 5 * time.Minute
	// maxTrail bounds each kind of history.
	maxTrail = 64
)

// Ref names a ScaledObject.
type Ref struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (r Ref) String() string { return r.Namespace + "/" + r.Name }

// Record is what a planner leaves for the next one: the body of the stored plan. All
// times are moments of the pool's clock in milliseconds; -1 is never.
type Record struct {
	Format   int               `json:"format"`
	At       int64             `json:"at_ms"` // of the facts that it rests on
	Ref      Ref               `json:"scaled_object"`
	CalledAt int64             `json:"called_ms"` // when KEDA last asked for this ScaledObject
	Metadata map[string]string `json:"metadata"`
	Needed   int               `json:"needed"` // the sample that this decision added to Peaks
	Peaks    []Sample          `json:"peaks"`  // maxima of the wanted number, for the cool-down: later ones are lower
	Lows     []Sample          `json:"lows"`   // minima of the stored number, for releases: later ones are higher
	// Lowered is when a lower number was last stored.
	Lowered int64 `json:"lowered_ms"`
	// InRange says since when ordinals are below the stored number: from N on, since At, up to the next
	// entry's N. Those before the first entry have been for longer than the start timeout.
	InRange  []Sample `json:"in_range"`
	Cordoned Sample   `json:"cordoned"` // marks set in the present period of the rate limit
	Why      Why      `json:"why"`
	Risks    []Risk   `json:"risks,omitempty"`
	// Start is the StatefulSet's first ordinal: all numbers count from there.
	Start int `json:"start,omitempty"`
	// Highs are maxima of the stored number, within the time that an answer takes to have its effect.
	Highs    []Sample  `json:"highs,omitempty"`
	Released []Release `json:"released,omitempty"`
	Scale    *Scaling  `json:"kubernetes,omitempty"` // nil where Kubernetes is not read
	Hand     *Hand     `json:"hand,omitempty"`       // the last change past the scaler
	Past     []Past    `json:"past,omitempty"`       // earlier decisions, the latest last
}

// Sample is a number at a moment.
type Sample struct {
	At int64 `json:"at_ms"`
	N  int   `json:"n"`
}

// readRecord returns the record of a stored plan, corrected by what only the store
// knew: the number before it stayed in force until it was stored.
func readRecord(p *brokerapi.Plan, now int64) (*Record, error) {
	if p == nil || p.Version == 0 {
		return nil, nil
	}
	var r Record
	if err := json.Unmarshal(p.Body, &r); err != nil {
		return nil, fmt.Errorf("read the record of plan %d: %w", p.Version, err)
	}
	if r.Format != recordFormat {
		return nil, fmt.Errorf("read the record of plan %d: it has format %d, this scaler knows %d", p.Version, r.Format, recordFormat)
	}
	if r.At > now {
		return nil, fmt.Errorf("read the record of plan %d: it is of a later time than the store's", p.Version)
	}
	stored := max(r.At, now-p.AgeMS)
	if n := len(r.Lows); n > 0 && r.Lows[n-1].At == r.At {
		r.Lows[n-1].At = stored
	}
	if r.Lowered == r.At {
		r.Lowered = stored
	}
	return &r, nil
}

// pushPeak adds a sample to a history of maxima over a window. The window is cut
// into slices and a sample counts until the end of its slice has left it, so that the
// history stays short; it only ever remembers too long.
func pushPeak(trail []Sample, at int64, n int, window time.Duration) []Sample {
	slice := max(1, window.Milliseconds()/(maxTrail/2))
	end := at - at%slice + slice - 1
	trail = keepFrom(trail, at-window.Milliseconds())
	for len(trail) > 0 && trail[len(trail)-1].N <= n {
		end = max(end, trail[len(trail)-1].At)
		trail = trail[:len(trail)-1]
	}
	if last := len(trail) - 1; last >= 0 && trail[last].At >= end {
		return trail // a higher one counts for longer
	}
	return bound(append(trail, Sample{At: end, N: n}))
}

// pushLow adds a sample to a history of minima over a window.
func pushLow(trail []Sample, at int64, n int, window time.Duration) []Sample {
	trail = keepFrom(trail, at-window.Milliseconds())
	for len(trail) > 0 && trail[len(trail)-1].N >= n {
		trail = trail[:len(trail)-1]
	}
	return bound(append(trail, Sample{At: at, N: n}))
}

// keepFrom returns the samples that are not older than the moment, in memory of their own.
func keepFrom(trail []Sample, since int64) []Sample {
	for len(trail) > 0 && trail[0].At < since {
		trail = trail[1:]
	}
	return append([]Sample(nil), trail...)
}

// bound joins the two oldest samples when there are too many. The older one is the
// stricter in both kinds of history; it now counts for as long as the younger.
func bound(trail []Sample) []Sample {
	for len(trail) > maxTrail {
		trail[1].N = trail[0].N
		trail = trail[1:]
	}
	return trail
}

// inRangeAfter returns since when ordinals are in range once the number has gone from r to d.
func inRangeAfter(steps []Sample, now int64, r, d int, timeout time.Duration) []Sample {
	var kept []Sample
	for _, s := range steps {
		if s.N < d && now-s.At < timeout.Milliseconds() {
			kept = append(kept, s)
		}
	}
	if d > r {
		kept = append(kept, Sample{At: now, N: r})
	}
	if len(kept) > maxTrail {
		kept = kept[len(kept)-maxTrail:]
	}
	return kept
}
