package demo

import "fmt"

// leastPeak is how far the pool must have grown.
const leastPeak = 4

// verdict is what is said at the end.
type verdict struct {
	result
	LeastRooms int // as many must have opened
}

func newVerdict(o Options, r result) verdict { return verdict{r, 2 * o.Rooms} }

// line is the verdict in a form that does not change.
func (v verdict) line(naive bool) string {
	word := "verdict"
	if naive {
		word = "naive"
	}
	return fmt.Sprintf("%s: rooms=%d cut_by_scale_in=%d instances=%d->%d->%d", word, v.Rooms, v.ByScaleIn, v.First, v.Most, v.Last)
}

func (v verdict) ok() bool { return len(v.wants()) == 0 }

// wants says what is wanting.
func (v verdict) wants() []string {
	var list []string
	add := func(bad bool, format string, args ...any) {
		if bad {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	add(v.ByScaleIn > 0, "%d rooms were cut by scale-in", v.ByScaleIn)
	add(v.First != base, "it began with %d instances instead of %d", v.First, base)
	add(v.Most < leastPeak, "it grew to %d instances only, not to %d", v.Most, leastPeak)
	add(v.Last != base, "it did not come back to %d instances but was left at %d", base, v.Last)
	add(v.Rooms < v.LeastRooms, "only %d rooms opened, at least %d should have", v.Rooms, v.LeastRooms)
	return list
}
