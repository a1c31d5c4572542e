package load

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

// Lives tells which life of an instance runs now, and why a life ended.
type Lives interface {
	// Current returns the life that runs under an instance's name, 0 for none.
	Current(instance string) int
	// Cause says why that life ended or is ending; "" if it is not.
	Cause(life int) string
}

// Config says where the load goes.
type Config struct {
	Directory Directory
	// URL is the Janus API of the instance that a pin names.
	URL   func(brokerapi.Pin) string
	Lives Lives
	HTTP  *http.Client // for Janus; it must not time out by itself
	// Pace is the time between two signs of life of a participant: so soon is a cut noticed.
	Pace time.Duration
	// Patience is how long a refused or failing create is repeated.
	Patience time.Duration
	OnEvent  func(Event) // nil: nobody
	Log      *slog.Logger
}

// Kind is what happened to a room.
type Kind string

// The kinds of events.
const (
	Opened  Kind = "opened"
	Joined  Kind = "joined" // one person
	Left    Kind = "left"   // one person, by will or not
	Closed  Kind = "closed" // after its people had left
	Cut     Kind = "cut"    // it ended while people were in it or on their way to it
	Refused Kind = "refused"
)

// Event is a change of a room.
type Event struct {
	At       time.Time
	Kind     Kind
	Room     Room
	Instance string
	Cause    string // of a cut: that of the instance's end, or "other"
	Detail   string // what was noticed
}

// Other is the cause of a cut whose instance did not end.
const Other = "other"

// Stats are counts since the start.
type Stats struct {
	Rooms    int            // opened
	Open     int            // now
	People   int            // joined now
	Joins    int            // in all
	Closed   int            // in peace
	Cut      int            // in all
	CutBy    map[string]int // by cause
	Refused  int            // never opened
	Attempts int            // creates that failed and were repeated
	At       map[string]int // people now by instance
}

// Load runs a plan. Make one with New.
type Load struct {
	c     Config
	rooms []Room

	mu    sync.Mutex
	stats Stats
}

// New returns a load that has not started.
func New(c Config, rooms []Room) *Load {
	return &Load{c: c, rooms: rooms, stats: Stats{CutBy: map[string]int{}, At: map[string]int{}}}
}

// Run opens the rooms at their times and returns when the last has ended. When ctx ends, everybody
// leaves in peace and no further room opens.
func (l *Load) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	begin := time.Now()
	for _, r := range l.rooms {
		if !sleep(ctx, r.At-time.Since(begin)) {
			return
		}
		wg.Go(func() { l.host(ctx, r) })
	}
}

// Stats returns a copy of the counts.
func (l *Load) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.CutBy, s.At = map[string]int{}, map[string]int{}
	for k, v := range l.stats.CutBy {
		s.CutBy[k] = v
	}
	for k, v := range l.stats.At {
		s.At[k] = v
	}
	return s
}

func (l *Load) note(e Event) {
	e.At = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock() // OnEvent sees the events in order
	s := &l.stats
	switch e.Kind {
	case Opened:
		s.Rooms++
		s.Open++
	case Joined:
		s.People++
		s.Joins++
		s.At[e.Instance]++
	case Left:
		s.People--
		s.At[e.Instance]--
	case Closed:
		s.Open--
		s.Closed++
	case Cut:
		s.Open--
		s.Cut++
		s.CutBy[e.Cause]++
	case Refused:
		s.Refused++
	}
	if l.c.OnEvent != nil {
		l.c.OnEvent(e)
	}
}

func (l *Load) retried() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Attempts++
}

// sleep waits and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
