package redisstore

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roomscaler/roomscaler/broker"
)

// reply is an answer of a script, or a record in it, read from the front. bad is set by the
// first field that is missing or of another form; all fields read after it are zero.
type reply struct {
	fields []string
	bad    bool
}

// readReply reads an answer's code. Fields follow "ok", and "noroom", which has the state
// with it.
func readReply(doing string, answer []string) (reply, error) {
	if len(answer) == 0 {
		return reply{}, unreadable(doing, "an empty answer")
	}
	r := reply{fields: answer[1:]}
	switch code := answer[0]; code {
	case "ok":
		return r, nil
	case "seal":
		e := &broker.SealError{}
		for len(r.fields) > 0 && !r.bad {
			e.Refusals = append(e.Refusals, broker.SealRefusal{Instance: r.text(), Ordinal: r.int(), Why: r.text(), Pins: r.int()})
		}
		if r.bad || len(e.Refusals) == 0 {
			return reply{}, unreadable(doing, "a refusal")
		}
		slices.SortFunc(e.Refusals, func(a, b broker.SealRefusal) int {
			return cmp.Or(cmp.Compare(a.Ordinal, b.Ordinal), cmp.Compare(a.Instance, b.Instance))
		})
		return reply{}, e
	case "noinfo":
		return reply{}, noInfo(doing, r.text())
	default:
		if err := refusal(code); err != nil {
			return r, err
		}
		return reply{}, unreadable(doing, "the answer "+strconv.Quote(code))
	}
}

const (
	separator = "\x1f"
	escape    = "\x1e"
)

// quote keeps the separator out of a field.
func quote(s string) string {
	if !strings.ContainsAny(s, separator+escape) {
		return s
	}
	return strings.NewReplacer(escape, escape+"a", separator, escape+"b").Replace(s)
}

func unquote(s string) string {
	if !strings.Contains(s, escape) {
		return s
	}
	return strings.NewReplacer(escape+"a", escape, escape+"b", separator).Replace(s)
}

// raw returns the next field as it is.
func (r *reply) raw() string {
	if r.bad || len(r.fields) == 0 {
		r.bad = true
		return ""
	}
	f := r.fields[0]
	r.fields = r.fields[1:]
	return f
}

func (r *reply) text() string { return unquote(r.raw()) }

func (r *reply) int64() int64 {
	n, err := strconv.ParseInt(r.raw(), 10, 64)
	if err != nil {
		r.bad = true
		return 0
	}
	return n
}

func (r *reply) int() int              { return int(r.int64()) }
func (r *reply) time() broker.PoolTime { return broker.PoolTime(r.int64()) }
func (r *reply) flag() bool            { return r.raw() != "" }
func (r *reply) record() *reply {
	return &reply{fields: strings.Split(r.raw(), separator), bad: r.bad}
}

func (r *reply) state() broker.StoreState {
	return broker.StoreState{Term: broker.Term(r.text()), Phase: broker.Phase(r.text()), Now: r.time(), Gap: r.time(), Floor: r.int()}
}

// pin reads the next field as the record of a room's pin.
func (r *reply) pin(room string) broker.Pin {
	v := r.record()
	p := broker.Pin{
		Room: room, Instance: v.text(), Incarnation: v.text(), Epoch: broker.Epoch(v.int64()), State: broker.PinState(v.raw()),
		Expected: v.int(), Reserved: v.int(), Created: v.time(), Since: v.time(), LastSeen: v.time(),
	}
	p.CreatedAt = time.UnixMicro(v.int64())
	v.raw() // the request
	p.Settings, p.Labels = v.doc()
	r.bad = r.bad || v.bad
	if r.bad {
		return broker.Pin{}
	}
	return p
}

// doc is what scripts only carry of a room.
type doc struct {
	Settings string            `json:"s,omitempty"`
	Labels   map[string]string `json:"l,omitempty"`
}

// writeDoc returns "" for nothing. JSON has no control characters in it.
func writeDoc(settings string, labels map[string]string) string {
	if settings == "" && len(labels) == 0 {
		return ""
	}
	b, err := json.Marshal(doc{settings, labels})
	if err != nil {
		panic(err) // strings alone: cannot fail
	}
	return string(b)
}

func (r *reply) doc() (string, map[string]string) {
	var d doc
	if s := r.raw(); s != "" && json.Unmarshal([]byte(s), &d) != nil {
		r.bad = true
	}
	return d.Settings, d.Labels
}

// instance reads three fields: name, record and creation of the oldest pin.
func (r *reply) instance() broker.Instance {
	in := broker.Instance{Name: r.text()}
	v := r.record()
	in.Incarnation, in.Ordinal, in.Sessions, in.Reserved, in.Pins = v.text(), v.int(), v.int(), v.int(), v.int()
	v.raw() // whether it is closed to claims
	in.Address, in.Participants, in.Rooms, in.StringIDs = v.text(), v.int(), v.int(), v.flag()
	in.LookBegin, in.EmptySince, in.FirstSeen, in.ListedAt, in.LifeSince = v.time(), v.time(), v.time(), v.time(), v.time()
	in.Fault, in.Advice, in.FaultSince, in.Failures = broker.Fault(v.text()), v.text(), v.time(), v.int()
	version, sealed := v.int64(), v.time()
	if sealed != broker.Never {
		in.Seal = &broker.Seal{Version: version, At: sealed}
	}
	in.Lost, in.Answered = v.flag(), v.flag()
	v.time() // since when it is known
	v.time() // begin of the last failed look
	v.raw()  // the request of that
	v.raw()  // the request that ended a life
	for len(v.fields) > 0 && !v.bad {
		in.Marks = append(in.Marks, broker.Mark{
			Owner: broker.Owner(v.text()), Since: v.time(), Grace: time.Duration(v.int64()), Reason: v.text(),
		})
	}
	in.OldestPin = r.time()
	r.bad = r.bad || v.bad
	if r.bad {
		return broker.Instance{}
	}
	return in
}

// plan reads the seven fields of the plan.
func (r *reply) plan() broker.Plan {
	p := broker.Plan{Version: r.int64(), Desired: r.int(), Target: r.int(), EmptyWhen: r.text()}
	if body := r.raw(); body != "" {
		p.Body = []byte(body)
	}
	p.StoredAt = r.time()
	for _, g := range strings.FieldsFunc(r.text(), func(c rune) bool { return c == ';' }) {
		var guard broker.Guard
		if _, err := fmt.Sscanf(g, "%d %d", &guard.Below, &guard.Until); err != nil {
			r.bad = true
			return broker.Plan{}
		}
		p.Guards = append(p.Guards, guard)
	}
	return p
}
