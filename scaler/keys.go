package scaler

import (
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// Key describes a key of trigger metadata.
type Key struct {
	Name, Meaning string
	Default       string // "" : none
	Low, High     string // the least and the greatest value; for a choice the choices, in Low
	Example       string // of a value
}

// Keys returns every key of trigger metadata that ParseTarget reads. Each may also be given as <key>FromEnv.
func Keys() []Key {
	return []Key{
		{"pool", "the broker's name of the pool; required", "", "a name of a-z and 0-9 with -", "", "janus"},
		{"targetSessionsPerInstance", "T: load that one instance is meant to carry; required", "", "1", "1000000", "50"},
		{"sessionMetric", "what of an instance is held against T", "sessions", "sessions, participants, rooms", "", "rooms"},
		{"emptyWhen", "when an instance without rooms is empty: no session left, or nobody in a room", "sessions", "sessions, rooms", "", "rooms"},
		{"cooldownWindow", "W: how long the load must stay low before the number falls", "5m", "0s", "168h", "10m"},
		{"drainGracePeriod", "X: how long the scaler waits for a marked instance to empty", "1h", "1ms", "168h", "2h"},
		{"onGraceExpired", "what then: let it go with its rooms, or wait for ever", "release", "release, hold", "", "hold"},
		{"spareSessions", "H: load kept free, as a number or a share of the demand; not beside spareInstances", "0", "0", "100000000", "10%"},
		{"spareInstances", "H in instances, as a number or a share of those that the demand fills", "0", "0", "99999", "1"},
		{"emptyDwell", "E: how long an instance must have been empty before it may go", "30s", "0s", "168h", "1m"},
		{"releaseGuard", "G: how long an answer may take to have its effect", "90s", "0s", "30m", "2m"},
		{"staleAfter", "how old data may be and still count", "30s", "1ms", "168h", "1m"},
		{"startTimeout", "how long an instance or pod may take to answer for the first time", "180s", "1ms", "168h", "5m"},
		{"maxReplacements", "how many instances that do not work are made up for at a time", "2", "0", "99999", "4"},
		{"minInstances", "least number; only where Kubernetes is not read (else minReplicaCount)", "1", "0", "99999", "2"},
		{"maxInstances", "greatest number; only where Kubernetes is not read (else maxReplicaCount)", "100", "1", "99999", "60"},
	}
}

// ourKeys are the names of the keys.
func ourKeys() []string {
	keys := Keys()
	names := make([]string, len(keys))
	for i := range keys {
		names[i] = keys[i].Name
	}
	return names
}

// kedaKeys are KEDA's own keys of an external trigger: it passes them on with ours.
func kedaKeys() []string { return []string{"scalerAddress", "enableTLS", "unsafeSsl"} }

const fromEnv = "FromEnv"

// reader takes values out of trigger metadata and keeps the first error.
type reader struct {
	values map[string]string // by our key
	keys   map[string]string // our key -> the key as written
	err    error
}

func newReader(metadata map[string]string) (*reader, error) {
	r := &reader{values: map[string]string{}, keys: map[string]string{}}
	kind := map[string]bool{} // true: ours
	for _, k := range ourKeys() {
		kind[k] = true
	}
	for _, k := range kedaKeys() {
		kind[k] = false
	}
	written := make([]string, 0, len(metadata))
	for k := range metadata {
		written = append(written, k)
	}
	sort.Strings(written)
	for _, k := range written {
		stem := strings.TrimSuffix(k, fromEnv)
		ours, known := kind[stem]
		if !known {
			return nil, &TargetError{shown(k), "is no key of this scaler" + advise(stem) + "; remove it or correct its name"}
		}
		if !ours {
			continue
		}
		if other, twice := r.keys[stem]; twice {
			return nil, &TargetError{k, "is given beside " + other + "; keep one of them"}
		}
		r.keys[stem], r.values[stem] = k, strings.TrimSpace(metadata[k])
	}
	return r, nil
}

func (r *reader) value(key string) (string, bool) {
	v, ok := r.values[key]
	return v, ok
}

func (r *reader) fail(key, want string) {
	if r.err != nil {
		return
	}
	if written, ok := r.keys[key]; ok {
		key = written
	}
	r.err = &TargetError{key, want}
}

// advise names the key that was probably meant, or all of them.
func advise(key string) string {
	best, least := "", 4
	for _, k := range ourKeys() {
		if d := distance(strings.ToLower(clip(key)), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf(" (did you mean %s?)", best)
	}
	return " (it knows " + strings.Join(ourKeys(), ", ") + ")"
}

// distance is the number of letters to change, add or remove between a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			cost := left
			if a[i] != b[j] {
				cost = 1 + min(left, above, row[j])
			}
			left, row[j+1] = above, cost
		}
	}
	return row[len(b)]
}

var plainKey = regexp.MustCompile(`^[-A-Za-z0-9_./]{1,40}$`)

// shown returns a key as it is written in an error: in one line, and not without end.
func shown(key string) string {
	if plainKey.MatchString(key) {
		return key
	}
	return quote(key)
}

func quote(s string) string { return strconv.Quote(clip(s)) }

func clip(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}
