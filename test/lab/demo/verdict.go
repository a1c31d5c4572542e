package demo

import "fmt"

// leastPeak is how far the pool must have grown.
const leastPeak = 4

// Verdict is what a run came to.
type Verdict struct {
	Rooms      int // that opened
	LeastRooms int // so many must have
	ByScaleIn  int // rooms that were cut by it
	Others     int // rooms cut by other causes
	Refused    int // rooms that never opened
	First      int // instances at the start
	Most       int // instances at most
	Last       int // instances at the end
}

// Line is the verdict in a form that does not change. That of the naive run begins with another word.
func (v Verdict) Line(naive bool) string {
	word := "verdict"
	if naive {
		word = "naive"
	}
	return fmt.Sprintf("%s: rooms=%d cut_by_scale_in=%d instances=%d->%d->%d", word, v.Rooms, v.ByScaleIn, v.First, v.Most, v.Last)
}

// Good reports whether nothing is wanting.
func (v Verdict) Good() bool { return len(v.Wants()) == 0 }

// Wants says what is wanting, a sentence each.
func (v Verdict) Wants() []string {
	var list []string
	add := func(bad bool, format string, args ...any) {
		if bad {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	add(v.ByScaleIn > 0, "%d rooms were cut by scale-in", v.ByScaleIn)
	add(v.Others > 0, "%d rooms were cut by something else than scale-in", v.Others)
	add(v.First != base, "it began with %d instances instead of %d", v.First, base)
	add(v.Most < leastPeak, "it grew to %d instances only, not to %d", v.Most, leastPeak)
	add(v.Last != base, "it did not come back to %d instances but was left at %d", base, v.Last)
	add(v.Rooms < v.LeastRooms, "only %d rooms opened, at least %d should have", v.Rooms, v.LeastRooms)
	return list
}
