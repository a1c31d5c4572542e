package drainhook

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

var testRules = rules{grace: time.Hour, interval: 5 * time.Second, dwell: 30 * time.Second}

// What one look may see.
var (
	busy       = seen{answered: true, rooms: 2, sessions: 5, age: time.Second, local: 5}
	brokerDone = seen{answered: true, empty: true, rooms: 0, sessions: 0, age: 0, local: 0}
	oldDone    = seen{answered: true, empty: true, rooms: 0, sessions: 0, age: time.Minute, local: 0}
	slippedIn  = seen{answered: true, empty: true, rooms: 0, sessions: 0, age: 0, local: 1}
	doubtful   = seen{answered: true, rooms: 0, sessions: unknown, age: unknown, local: unknown}
	pinnedRoom = seen{answered: true, rooms: 1, sessions: 0, age: 0, local: 0}
	idleOnly   = seen{answered: true, empty: true, rooms: 0, sessions: 3, age: 0, local: 3} // emptyWhen=rooms
	idleAndOne = seen{answered: true, empty: true, rooms: 0, sessions: 3, age: 0, local: 4}
	noLocal    = seen{answered: true, empty: true, rooms: 0, sessions: 0, age: 0, local: unknown}
	silentBusy = seen{rooms: unknown, sessions: unknown, age: unknown, local: 3}
	silentNone = seen{rooms: unknown, sessions: unknown, age: unknown, local: 0}
	silent     = seen{rooms: unknown, sessions: unknown, age: unknown, local: unknown}
	refused    = seen{rooms: unknown, sessions: unknown, age: unknown, local: unknown, gone: true}
)

// at is a look and the time at which it ends.
type at struct {
	t time.Duration
	v seen
}

func looks(v seen, times ...time.Duration) []at {
	var all []at
	for _, t := range times {
		all = append(all, at{t * time.Second, v})
	}
	return all
}

func then(parts ...[]at) []at {
	var all []at
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func TestNext(t *testing.T) {
	for _, tc := range []struct {
		name    string
		looks   []at
		stuck   bool // the door does not move
		want    order
		outcome Outcome
	}{
		{"people are waited for", looks(busy, 1, 6, 3000), false, look, ""},
		{"the broker's empty closes the door first", looks(brokerDone, 1), false, shut, ""},
		{"a look from before the door closed proves nothing", then(looks(brokerDone, 1), looks(oldDone, 2, 3)), false, look, ""},
		{"a look from behind the closed door ends it", looks(brokerDone, 1, 3), false, end, Drained},
		{"somebody who slipped in opens the door", then(looks(brokerDone, 1), looks(slippedIn, 3)), false, reopen, ""},
		{"a room behind the closed door opens it", then(looks(brokerDone, 1), looks(pinnedRoom, 3)), false, reopen, ""},
		{"somebody there before the door closes keeps it open", looks(slippedIn, 1, 2, 3), false, look, ""},
		{"after somebody slipped in an empty instance still ends", then(looks(brokerDone, 1), looks(slippedIn, 3), looks(brokerDone, 9, 12)), false, end, Drained},
		{"idle sessions that the broker knows of do not hold", looks(idleOnly, 1, 3), false, end, Drained},
		{"one more than the idle ones does", then(looks(idleOnly, 1), looks(idleAndOne, 3)), false, reopen, ""},
		{"an unreadable local server does not hold what the broker calls empty", looks(noLocal, 1, 3), false, end, Drained},
		{"a broker that never looks again is believed after the dwell", then(looks(brokerDone, 1), looks(oldDone, 10, 20, 31)), false, end, Drained},
		{"a door that does not move is tried again", looks(brokerDone, 1, 2, 3), true, shut, ""},
		{"a door that does not move holds no empty instance for ever", looks(brokerDone, 1, 2, 31), true, end, Drained},
		{"the broker's doubt is not empty", looks(doubtful, 1, 100, 3599), false, look, ""},
		{"a pinned room holds although nobody is there", looks(pinnedRoom, 1, 100, 3599), false, look, ""},
		{"without a broker local sessions hold", looks(silentBusy, 1, 100, 3599), false, look, ""},
		{"without a broker two empty local looks are too few", looks(silentNone, 1, 100), false, look, ""},
		{"without a broker three empty local looks in a moment are too few", looks(silentNone, 1, 2, 3), false, look, ""},
		{"without a broker a held local emptiness closes the door", looks(silentNone, 1, 20, 31), false, shut, ""},
		{"without a broker one more look behind the door ends it", looks(silentNone, 1, 20, 31, 32), false, end, Drained},
		{"one session begins the count anew", then(looks(silentNone, 1, 20), looks(silentBusy, 25), looks(silentNone, 30, 40, 59)), false, look, ""},
		{"a failed look begins the count anew", then(looks(silentNone, 1, 20), looks(silent, 25), looks(silentNone, 30, 40, 59)), false, look, ""},
		{"a broker that comes back with a room overrules the local count", then(looks(silentNone, 1, 20), looks(pinnedRoom, 31)), false, look, ""},
		{"nothing known is waited for", looks(silent, 1, 100, 3599), false, look, ""},
		{"refused from the start may be a wrong address", looks(refused, 1, 100, 3599), false, look, ""},
		{"refused twice after an answer is too few", then(looks(silentBusy, 1), looks(refused, 2, 100)), false, look, ""},
		{"refused for long after an answer is the end of the server", then(looks(silentBusy, 1), looks(refused, 2, 7, 12)), false, end, Gone},
		{"the grace ends it with people left", looks(busy, 1, 3600), false, end, Expired},
		{"the grace ends it with nothing known", looks(silent, 1, 3600), false, end, Expired},
		{"empty in the last moment is empty", looks(brokerDone, 3600), false, end, Drained},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var s state
			var got step
			for i, l := range tc.looks {
				s, got = next(testRules, s, l.v, l.t)
				if got.do == end && i < len(tc.looks)-1 {
					t.Fatalf("ended as %s at %s, before the last look", got.outcome, l.t)
				}
				if got.do == shut {
					s = s.closed(!tc.stuck, l.t)
				}
			}
			if got.do != tc.want || got.outcome != tc.outcome {
				t.Errorf("got order %d %q, want %d %q", got.do, got.outcome, tc.want, tc.outcome)
			}
		})
	}
}

func TestNext_Wait(t *testing.T) {
	t.Run("a silent broker is asked more and more slowly", func(t *testing.T) {
		var s state
		var got step
		before := time.Duration(0)
		for i := range 12 {
			s, got = next(testRules, s, silent, time.Duration(i)*time.Second)
			if got.wait < before || got.wait <= 0 || got.wait > testRules.interval {
				t.Fatalf("wait %d is %s after %s", i, got.wait, before)
			}
			before = got.wait
		}
		if before != testRules.interval {
			t.Errorf("the last wait is %s, want the interval", before)
		}
	})
	t.Run("no wait reaches over the grace", func(t *testing.T) {
		_, got := next(testRules, state{}, busy, time.Hour-time.Second)
		if got.wait != time.Second {
			t.Errorf("got %s, want 1s", got.wait)
		}
	})
}

// While every look finds somebody or nothing at all, no order of looks ends the drain
// before its grace: no error, no pause and no answer of the broker does.
func TestNext_NeverEndsEarly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		occupied := rapid.SampledFrom([]seen{busy, slippedIn, doubtful, pinnedRoom, idleAndOne, silentBusy, silent})
		var s state
		var now time.Duration
		for range rapid.IntRange(1, 40).Draw(t, "looks") {
			now += time.Duration(rapid.Int64Range(0, int64(80*time.Second)).Draw(t, "step"))
			var got step
			s, got = next(testRules, s, occupied.Draw(t, "seen"), now)
			switch {
			case got.do == end && (now < testRules.grace || got.outcome != Expired):
				t.Fatalf("ended as %s at %s", got.outcome, now)
			case got.do == end:
				return
			case got.do == shut:
				t.Fatalf("closed the door at %s with somebody inside", now)
			}
		}
	})
}
