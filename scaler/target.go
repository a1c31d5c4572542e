package scaler

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// SessionMetric names which number of an instance is held against the target.
type SessionMetric string

// The metrics of load.
const (
	MetricSessions     SessionMetric = "sessions"     // client sessions, and reservations
	MetricParticipants SessionMetric = "participants" // people in rooms, and reservations
	MetricRooms        SessionMetric = "rooms"        // rooms
)

// What the scaler does with an instance that is not empty when its grace is over.
const (
	GraceRelease = "release" // lets it go, rooms or not
	GraceHold    = "hold"    // waits for ever
)

// When an instance counts as empty.
const (
	EmptySessions = "sessions" // no pin and no session
	EmptyRooms    = "rooms"    // no pin and nobody in a room
)

// Spare is capacity kept free beyond the demand.
type Spare struct {
	Sessions  int // an absolute number, in units of the session metric
	Instances int // an absolute number of instances' worth
	// SessionPercent is a share of the demand; InstancePercent a share of the
	// instances that the demand fills, rounded up to whole instances.
	SessionPercent, InstancePercent float64
}

// Target is what a ScaledObject's trigger asks for. Only [ParseTarget] makes valid ones.
type Target struct {
	Pool             string
	PerInstance      int // T, at least 1
	Metric           SessionMetric
	EmptyWhen        string
	Cooldown         time.Duration // W: how long the load must stay low before the number falls
	DrainGrace       time.Duration // X: how long the scaler waits for a marked instance to empty
	OnGraceExpired   string
	Spare            Spare
	EmptyDwell       time.Duration // E: how long an instance must have been empty
	ReleaseGuard     time.Duration // G: how long an answer may take to have its effect
	StaleAfter       time.Duration // data older than this is unknown
	StartTimeout     time.Duration // how long an instance may take to answer for the first time
	MaxReplacements  int           // how many broken instances are replaced at a time
	MinInstances     int
	MaxInstances     int
	spareAs, spareIs string // the key and value as written
	bounded          bool   // minInstances or maxInstances are given
}

// TargetError says which key of the trigger metadata is wrong and how to mend it.
type TargetError struct {
	Key  string
	Want string
}

func (e *TargetError) Error() string { return "metadata " + e.Key + ": " + e.Want }

// The greatest values that are believed: larger ones are mistakes, and small
// enough that no sum of the law can overflow.
const (
	maxPerInstance = 1_000_000
	maxInstances   = 99_999
	maxSpare       = 100_000_000
	maxPercent     = 1000
	maxPeriod      = 7 * 24 * time.Hour
	maxGuard       = 30 * time.Minute // a broker takes no longer one
)

var poolForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// ParseTarget reads the metadata of a KEDA trigger. The defaults are: sessionMetric
// and emptyWhen sessions, cooldownWindow 5m, drainGracePeriod 1h, onGraceExpired
// release, no spare, emptyDwell 30s, releaseGuard 90s, staleAfter 30s, startTimeout
// 180s, maxReplacements 2, minInstances 1, maxInstances 100; pool and
// targetSessionsPerInstance are required. A key may also be given as <key>FromEnv, whose
// value KEDA has resolved already. A key that nobody knows is an error, because a
// misspelt one would silently leave the default in force. Errors are *TargetError.
func ParseTarget(metadata map[string]string) (Target, error) {
	r, err := newReader(metadata)
	if err != nil {
		return Target{}, err
	}
	t := Target{
		Pool:            r.name("pool"),
		PerInstance:     r.integer("targetSessionsPerInstance", required, 1, maxPerInstance),
		Metric:          SessionMetric(r.choice("sessionMetric", "sessions", "participants", "rooms")),
		EmptyWhen:       r.choice("emptyWhen", EmptySessions, EmptyRooms),
		Cooldown:        r.duration("cooldownWindow", 5*time.Minute, 0, maxPeriod),
		DrainGrace:      r.duration("drainGracePeriod", time.Hour, time.Millisecond, maxPeriod),
		OnGraceExpired:  r.choice("onGraceExpired", GraceRelease, GraceHold),
		EmptyDwell:      r.duration("emptyDwell", 30*time.Second, 0, maxPeriod),
		ReleaseGuard:    r.duration("releaseGuard", 90*time.Second, 0, maxGuard),
		StaleAfter:      r.duration("staleAfter", 30*time.Second, time.Millisecond, maxPeriod),
		StartTimeout:    r.duration("startTimeout", 180*time.Second, time.Millisecond, maxPeriod),
		MaxReplacements: r.integer("maxReplacements", "2", 0, maxInstances),
		MinInstances:    r.integer("minInstances", "1", 0, maxInstances),
		MaxInstances:    r.integer("maxInstances", "100", 1, maxInstances),
	}
	t.Spare, t.spareAs, t.spareIs = r.spare()
	_, low := r.value("minInstances")
	_, high := r.value("maxInstances")
	t.bounded = low || high
	if r.err == nil && t.MinInstances > t.MaxInstances {
		r.fail("minInstances", fmt.Sprintf("%d is above maxInstances %d; lower the one or raise the other", t.MinInstances, t.MaxInstances))
	}
	if r.err != nil {
		return Target{}, r.err
	}
	return t, nil
}

// Metadata returns all that the target says in the form that ParseTarget reads, so
// that it can be stored beside a decision.
func (t Target) Metadata() map[string]string {
	m := map[string]string{
		"pool":                      t.Pool,
		"targetSessionsPerInstance": strconv.Itoa(t.PerInstance),
		"sessionMetric":             string(t.Metric),
		"emptyWhen":                 t.EmptyWhen,
		"cooldownWindow":            t.Cooldown.String(),
		"drainGracePeriod":          t.DrainGrace.String(),
		"onGraceExpired":            t.OnGraceExpired,
		"emptyDwell":                t.EmptyDwell.String(),
		"releaseGuard":              t.ReleaseGuard.String(),
		"staleAfter":                t.StaleAfter.String(),
		"startTimeout":              t.StartTimeout.String(),
		"maxReplacements":           strconv.Itoa(t.MaxReplacements),
	}
	if t.bounded {
		m["minInstances"], m["maxInstances"] = strconv.Itoa(t.MinInstances), strconv.Itoa(t.MaxInstances)
	}
	if t.spareAs != "" {
		m[t.spareAs] = t.spareIs
	}
	return m
}

// sessions returns H, the spare that goes with a demand.
func (s Spare) sessions(demand, perInstance int) int {
	h := float64(s.Sessions) + float64(s.Instances)*float64(perInstance)
	h += math.Ceil(float64(demand) * s.SessionPercent / 100)
	filled := math.Ceil(float64(demand) / float64(perInstance))
	h += math.Ceil(filled*s.InstancePercent/100) * float64(perInstance)
	return int(min(h, maxDemand))
}

const required = "" // as a default: there is none

func (r *reader) name(key string) string {
	v, ok := r.value(key)
	switch {
	case !ok:
		r.fail(key, "is missing; give the broker's name of the pool")
	case !poolForm.MatchString(v):
		r.fail(key, fmt.Sprintf("%s is no pool name; use 1-63 of a-z, 0-9 and -", quote(v)))
	}
	return v
}

func (r *reader) integer(key, def string, low, high int) int {
	v, ok := r.value(key)
	if !ok {
		v = def
	}
	if v == required && !ok {
		r.fail(key, fmt.Sprintf("is missing; give a whole number from %d to %d", low, high))
		return low
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < low || n > high {
		r.fail(key, fmt.Sprintf("%s does not fit; give a whole number from %d to %d", quote(v), low, high))
		return low
	}
	return n
}

func (r *reader) choice(key string, options ...string) string {
	v, ok := r.value(key)
	if !ok {
		return options[0]
	}
	for _, o := range options {
		if v == o {
			return v
		}
	}
	r.fail(key, fmt.Sprintf("%s is none of the choices; give one of %s", quote(v), strings.Join(options, ", ")))
	return options[0]
}

func (r *reader) duration(key string, def, low, high time.Duration) time.Duration {
	v, ok := r.value(key)
	if !ok {
		return def
	}
	d, err := time.ParseDuration(v)
	switch {
	case err != nil:
		r.fail(key, fmt.Sprintf("%s is no duration; write it with its unit, as 90s or 1h30m", quote(v)))
	case d < low || d > high:
		r.fail(key, fmt.Sprintf("%s does not fit; give %s to %s", quote(v), low, high))
	case d%time.Millisecond != 0:
		r.fail(key, fmt.Sprintf("%s is too fine; give whole milliseconds", quote(v)))
	default:
		return d
	}
	return def
}

// spare reads the two ways to say how much is to be kept free, of which one may be used.
func (r *reader) spare() (s Spare, as, is string) {
	sessions, bySessions := r.value("spareSessions")
	instances, byInstances := r.value("spareInstances")
	switch {
	case bySessions && byInstances:
		r.fail("spareInstances", "is given beside spareSessions; keep one of them")
	case bySessions:
		s.Sessions, s.SessionPercent = r.amount("spareSessions", sessions, maxSpare)
		return s, "spareSessions", sessions
	case byInstances:
		s.Instances, s.InstancePercent = r.amount("spareInstances", instances, maxInstances)
		return s, "spareInstances", instances
	}
	return s, "", ""
}

// amount reads a number, or a share as "10%".
func (r *reader) amount(key, v string, high int) (n int, percent float64) {
	if share, ok := strings.CutSuffix(v, "%"); ok {
		p, err := strconv.ParseFloat(share, 64)
		if err != nil || !(p >= 0 && p <= maxPercent) {
			r.fail(key, fmt.Sprintf("%s is no share; give 0%% to %d%%", quote(v), maxPercent))
			return 0, 0
		}
		return 0, p
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n > high {
		r.fail(key, fmt.Sprintf("%s does not fit; give a whole number from 0 to %d, or a share as 10%%", quote(v), high))
		return 0, 0
	}
	return n, 0
}
