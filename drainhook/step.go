package drainhook

import "time"

// rules are the times by which next decides.
type rules struct {
	grace    time.Duration // how long to hold at most
	interval time.Duration // between looks while there is nothing new
	dwell    time.Duration // how long weaker evidence of emptiness must have held
}

const (
	proofLooks = 3                      // looks that weaker evidence takes, besides its time
	goneFor    = 10 * time.Second       // how long a server that had answered must have refused
	retrySoon  = time.Second            // between looks while the door is shut or would not shut
	firstRetry = 500 * time.Millisecond // to a silent broker; doubles up to rules.interval
	ageSlack   = time.Second            // for the time an answer takes and its rounding
)

// unknown is a count or an age that nobody could tell. It is never taken for zero.
const unknown = -1

// seen is the outcome of one look at the broker and the local server.
type seen struct {
	answered bool          // by the broker, about this instance
	empty    bool          // in its words
	rooms    int           // pinned here, by the broker; or unknown
	sessions int           // by the broker; or unknown
	age      time.Duration // of the look the broker's words rest on; or unknown
	local    int           // sessions on the local server; or unknown
	gone     bool          // the local server refused the connection
}

// agreed reports whether the broker says empty and the local count does not know of
// anybody whom the broker has not seen. With emptyWhen=rooms idle sessions may be left.
func (v seen) agreed() bool { return v.answered && v.empty && v.local <= max(0, v.sessions) }

// row counts looks in a row that saw the same.
type row struct {
	looks int
	since time.Duration
}

func (r row) count(hit bool, now time.Duration) row {
	switch {
	case !hit:
		return row{}
	case r.looks == 0:
		return row{1, now}
	}
	return row{r.looks + 1, r.since}
}

func (r row) held(d, now time.Duration) bool { return r.looks >= proofLooks && now-r.since >= d }

// state is what the hook remembers from look to look.
type state struct {
	shut    bool          // the door is closed
	shutAt  time.Duration // when it was found closed
	reached bool          // the local server has answered once: its address is right
	silent  int           // looks in a row without an answer of the broker
	none    row           // looks that saw no session on the local server
	gone    row           // looks that the local server refused, once reached
	said    row           // looks in which broker and local count agreed on empty
}

// order is what the hook does next.
type order int

const (
	look   order = iota // look again
	shut                // close the door, then look again
	reopen              // open the door, then look again
	end
)

// step is an order with the least time from the begin of the last look to that of the
// next, or with the outcome.
type step struct {
	do      order
	wait    time.Duration
	outcome Outcome
}

// next decides from what was seen at now, on the hook's own clock.
func next(r rules, s state, v seen, now time.Duration) (state, step) {
	s = s.after(v, now)
	switch {
	case s.gone.held(goneFor, now):
		return s, step{do: end, outcome: Gone}
	case s.proven(r, v, now):
		return s, step{do: end, outcome: Drained}
	case s.shut && (v.answered && !v.agreed() || v.local > 0 && !v.agreed()):
		s.shut = false
		return s, step{do: reopen, wait: r.interval}
	case now >= r.grace && !v.agreed():
		return s, step{do: end, outcome: Expired}
	case now >= r.grace:
		return s, step{do: end, outcome: Drained}
	case !s.shut && (v.agreed() || s.localEmpty(r, v, now)):
		return s, step{do: shut, wait: min(retrySoon, r.interval)}
	}
	return s, step{do: look, wait: min(s.pause(r), r.grace-now)}
}

// after adds one look to the state.
func (s state) after(v seen, now time.Duration) state {
	s.reached = s.reached || v.local != unknown
	if s.silent++; v.answered {
		s.silent = 0
	}
	s.none = s.none.count(v.local == 0, now)
	s.gone = s.gone.count(s.reached && v.gone, now)
	s.said = s.said.count(v.agreed(), now)
	return s
}

// proven reports whether this look ends the drain: the broker's word from a look of
// its own that began behind the closed door; or its word over many looks, where there is no such
// look or no door that closes; or, from a silent broker, the local count behind the
// closed door.
func (s state) proven(r rules, v seen, now time.Duration) bool {
	switch {
	case !v.answered:
		return s.shut && s.localEmpty(r, v, now)
	case !v.agreed():
		return false
	case s.shut && v.age != unknown && v.age+ageSlack <= now-s.shutAt:
		return true
	}
	return s.said.held(r.dwell, now)
}

// localEmpty reports whether the broker is silent and the local server has had no
// session over several looks and long enough.
func (s state) localEmpty(r rules, v seen, now time.Duration) bool {
	return !v.answered && v.local == 0 && s.none.held(r.dwell, now)
}

func (s state) pause(r rules) time.Duration {
	switch {
	case s.shut || s.said.looks > 0:
		return min(retrySoon, r.interval)
	case s.silent > 0:
		return min(firstRetry<<min(s.silent-1, 8), r.interval)
	}
	return r.interval
}

// closed notes the outcome of an order to shut.
func (s state) closed(ok bool, now time.Duration) state {
	s.shut, s.shutAt = ok, now
	return s
}
