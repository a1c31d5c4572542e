package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/roomscaler/roomscaler/broker"
)

// sameInstances and sameRooms are how many of each the random calls go to.
const (
	sameInstances = 3
	sameRooms     = 4
)

// Same makes the same random calls on a fresh store of each of two openers, and fails
// when they answer differently. Moments are compared by their distance from the
// term's beginning, epochs by the order in which they were seen. Both need Advance.
func Same(t *testing.T, a, b Opener) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		if diff := difference(t, a(t), b(t), drawMoves().Draw(rt, "moves")); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// difference makes the calls on both stores and returns the first answer in which they
// differ, "" if there is none.
func difference(t *testing.T, a, b Subject, moves []move) string {
	t.Helper()
	first, second := newSide(t, a), newSide(t, b)
	for i, m := range moves {
		got, want := first.do(t.Context(), m), second.do(t.Context(), m)
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Sprintf("call %d, %+v (-second +first):\n%s", i, m, diff)
		}
	}
	return ""
}

// move is one random call, in terms that fit both stores.
type move struct {
	Do       string
	Room     int
	Instance int
	Life     string // of the instance
	Owner    broker.Owner
	Epoch    int // the number of an epoch that was seen, from the last; see side.epoch
	N        int
	Mask     int  // of instances
	Yes, Or  bool // whatever the call has two of
	Back     time.Duration
	Wait     time.Duration
	WrongNow bool // for another term, or over another version
}

// drawMoves chooses calls; all that can be seen is looked at after them.
func drawMoves() *rapid.Generator[[]move] {
	// Lists of lists are long enough to get somewhere, and still shrink to a few.
	lists := rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(drawMove), 1, 16), 1, 16)
	return rapid.Map(lists, func(parts [][]move) []move {
		moves := append(slices.Concat(parts...), move{Do: "facts"}, move{Do: "pins"})
		for i := range sameInstances {
			moves = append(moves, move{Do: "tombstones", Instance: i})
		}
		return moves
	})
}

// drawMove chooses a call. What makes progress is more frequent than what does not.
func drawMove(t *rapid.T) move {
	one := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label) }
	wait := func(label string, from ...time.Duration) time.Duration { return rapid.SampledFrom(from).Draw(t, label) }
	return move{
		Do: one("do", "wait", "wait", "long", "claim", "claim", "claim", "claim", "confirm", "confirm", "lookup", "end", "end", "end",
			"record", "record", "record", "record", "mark", "mark", "unmark", "unmark", "adopt", "adopt", "plan", "plan", "plan",
			"lost", "rebirth", "forget", "assert", "finish", "begin", "facts", "pins", "tombstones"),
		Room:     rapid.IntRange(0, sameRooms-1).Draw(t, "room"),
		Instance: rapid.IntRange(0, sameInstances-1).Draw(t, "instance"),
		Life:     one("life", "first", "first", "first", "first", "second", ""),
		Owner:    broker.Owner(one("owner", "scaler", "scaler", "hook", "operator")),
		Epoch:    rapid.IntRange(-1, 3).Draw(t, "epoch"),
		N:        rapid.IntRange(0, 4).Draw(t, "n"),
		Mask:     rapid.IntRange(0, 1<<sameInstances-1).Draw(t, "mask"),
		Yes:      rapid.Bool().Draw(t, "yes"),
		Or:       rapid.Bool().Draw(t, "or"),
		Back:     wait("back", 0, 0, 0, 3*time.Millisecond, 2*time.Second),
		Wait:     wait("wait", 0, time.Millisecond, 997*time.Millisecond, 4003*time.Millisecond, 9007*time.Millisecond, time.Hour, -5*time.Second),
		WrongNow: rapid.IntRange(0, 15).Draw(t, "wrong") == 15,
	}
}

// side is one of the two stores, and what its answers are compared by.
type side struct {
	Subject
	term    broker.Term
	base    broker.PoolTime
	now     broker.PoolTime
	version int64
	epochs  []broker.Epoch
	highest broker.Epoch
}

// newSide opens a store with all instances looked at and the rebuilding over.
func newSide(t *testing.T, s Subject) *side {
	k := &kit{Subject: s, t: t, ctx: t.Context()}
	k.begin()
	for i := range sameInstances {
		_, err := k.Store.Record(k.ctx, k.term, k.report(i, func(r *broker.LookReport) { r.Incarnation = "first" }))
		k.noError("Record", err)
	}
	st := k.finish()
	return &side{Subject: s, term: k.term, base: st.Now, now: st.Now}
}

// at returns a moment by its distance from the beginning.
func (s *side) at(t broker.PoolTime) string {
	if t == broker.Never {
		return "never"
	}
	return fmt.Sprintf("%+dms", t-s.base)
}

// number returns an epoch by the order in which it was seen.
func (s *side) number(e broker.Epoch) int {
	for i, seen := range s.epochs {
		if seen == e {
			return i + 1
		}
	}
	if e == 0 {
		return 0
	}
	s.epochs = append(s.epochs, e)
	s.highest = max(s.highest, e)
	return len(s.epochs)
}

// epoch returns the epoch that was seen n before the last, 0 if there is none.
func (s *side) epoch(n int) broker.Epoch {
	if i := len(s.epochs) - 1 - n; n >= 0 && i >= 0 {
		return s.epochs[i]
	}
	return 0
}

func (s *side) wait(ctx context.Context, d time.Duration) string {
	s.Advance(d)
	st, err := s.Store.State(ctx)
	s.now = st.Now
	return s.state(st) + errorText(err)
}

func (s *side) state(st broker.StoreState) string {
	return fmt.Sprintf("own term %v, %s, now %s, gap %s, floor %d", st.Term == s.term, st.Phase, s.at(st.Now), s.at(st.Gap), st.Floor)
}

// errorText names an error as the contract does.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	var refused *broker.SealError
	if errors.As(err, &refused) {
		return fmt.Sprintf(" refused: %+v", refused.Refusals)
	}
	for _, known := range []error{
		broker.ErrRoomNotFound, broker.ErrInstanceNotFound, broker.ErrNoCapacity, broker.ErrStale, broker.ErrReleased,
		broker.ErrVersion, broker.ErrStoreLost, broker.ErrTerm, broker.ErrRebuilding,
	} {
		if errors.Is(err, known) {
			return " error: " + known.Error()
		}
	}
	return " unknown error: " + err.Error()
}
