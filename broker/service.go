package broker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// EmptyWhen says what makes an instance without pins empty.
type EmptyWhen string

// The senses of empty.
const (
	EmptySessions EmptyWhen = "sessions" // no client session left
	EmptyRooms    EmptyWhen = "rooms"    // no handle in any room
)

// Config is what a Service is told of its pool. The zero value of a field means its
// default, where one is given.
type Config struct {
	Pool                string
	Placement           Placement     // default least-loaded
	Target              int           // sessions per instance, before a plan says it; 0 = none
	EmptyWhen           EmptyWhen     // default sessions; a plan's word goes before
	MaxSessions         int           // per instance; 0 = no limit
	DefaultParticipants int           // expected of a room that does not say; default 2
	SweepInterval       time.Duration // default 5s
	InstanceTimeout     time.Duration // of one call to an instance; default 2s
	LostAfter           time.Duration // default 5m
	RoomTTL             time.Duration // default 10m
	RoomTTLDraining     time.Duration // default 2m
	Key                 RoomKey       // required: everything secret about rooms comes from it
}

func (c *Config) complete() error {
	setDefault(&c.Placement, LeastLoaded)
	setDefault(&c.EmptyWhen, EmptySessions)
	setDefault(&c.DefaultParticipants, 2)
	setDefault(&c.SweepInterval, 5*time.Second)
	setDefault(&c.InstanceTimeout, 2*time.Second)
	setDefault(&c.LostAfter, 5*time.Minute)
	setDefault(&c.RoomTTL, 10*time.Minute)
	setDefault(&c.RoomTTLDraining, 2*time.Minute)
	if err := CheckPool(c.Pool); err != nil {
		return err
	}
	switch {
	case c.Placement != LeastLoaded && c.Placement != Packed && c.Placement != RoundRobin:
		return &InvalidError{"placement", fmt.Sprintf("%q is none of least-loaded, packed, round-robin", clip(string(c.Placement)))}
	case c.EmptyWhen != EmptySessions && c.EmptyWhen != EmptyRooms:
		return &InvalidError{"empty-when", fmt.Sprintf("%q is neither sessions nor rooms", clip(string(c.EmptyWhen)))}
	case c.Target < 0:
		return &InvalidError{"target", "is negative; give sessions per instance, 0 for none"}
	case c.Placement == Packed && c.Target == 0:
		return &InvalidError{"target", "is needed for placement packed: it fills each instance up to it"}
	case c.MaxSessions < 0:
		return &InvalidError{"max-sessions", "is negative; give sessions per instance, 0 for no limit"}
	case c.DefaultParticipants < 0:
		return &InvalidError{"default-participants", "is negative"}
	case c.DefaultParticipants > MaxParticipants:
		return &InvalidError{"default-participants", fmt.Sprintf("is above %d; give the participants of a usual room", MaxParticipants)}
	case c.MaxSessions > 0 && c.DefaultParticipants > c.MaxSessions:
		return &InvalidError{"default-participants", "is above max-sessions: no room would ever fit"}
	case c.SweepInterval < 50*time.Millisecond:
		return &InvalidError{"sweep-interval", "is below 50ms"}
	case c.InstanceTimeout < 50*time.Millisecond:
		return &InvalidError{"instance-timeout", "is below 50ms"}
	case c.SweepInterval > maxInterval:
		return &InvalidError{"sweep-interval", fmt.Sprintf("is above %v; what nobody looks at for so long is not known", maxInterval)}
	case c.InstanceTimeout > maxInterval:
		return &InvalidError{"instance-timeout", fmt.Sprintf("is above %v; what answers after so long is of no use", maxInterval)}
	case c.LostAfter < 2*c.SweepInterval:
		return &InvalidError{"lost-after", "is below two sweeps: a single missed look would fence an instance"}
	case c.RoomTTL <= 0:
		return &InvalidError{"room-ttl", "is not positive"}
	case c.RoomTTLDraining <= 0:
		return &InvalidError{"room-ttl-draining", "is not positive"}
	case len(c.Key) < 16:
		return &InvalidError{"room-key", "has fewer than 16 bytes; use at least 16 random bytes"}
	}
	return nil
}

// maxInterval bounds the times that are reckoned with in multiples: far larger ones run over.
const maxInterval = time.Hour

func setDefault[T comparable](field *T, v T) {
	var zero T
	if *field == zero {
		*field = v
	}
}

// Service is the broker of one pool: any number of them, in any number of processes, may work on one
// store. It is safe for concurrent use.
type Service struct {
	cfg     Config
	store   Store
	backend Backend
	finder  Finder
	on      func(Event)

	term       atomic.Pointer[Term] // nil: none seen yet
	snapshot   atomic.Pointer[timedFacts]
	swept      atomic.Bool
	identified atomic.Pointer[map[string]string] // see PlaceRequest.Identified
	turn       atomic.Uint64
	kick       chan struct{} // asks Run for a sweep before its time

	facts   flight[Facts]
	creates flight[Pin]

	changed notifier // of the end of each sweep
	queue   queue

	mu          sync.Mutex
	memory      map[string]remembered // what this broker has seen of each instance
	found       map[string]Found      // the finder's last good answer
	noneFound   bool                  // that answer was an empty list
	lastDesired int                   // of the last plan seen in any term
	lastLimit   int                   // of the same plan, when it was seen
}

type timedFacts struct {
	Facts
	at time.Time
}

// NewService returns a broker of the pool that cfg names; it does nothing until a method is called. Events
// go to on, which must not block; nil drops them. A bad field is an *InvalidError.
func NewService(cfg Config, store Store, backend Backend, finder Finder, on func(Event)) (*Service, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	if on == nil {
		on = func(Event) {}
	}
	return &Service{
		cfg: cfg, store: store, backend: backend, finder: finder, on: on,
		kick:   make(chan struct{}, 1),
		memory: map[string]remembered{}, found: map[string]Found{},
	}, nil
}

// Config returns the configuration with its defaults.
func (s *Service) Config() Config { return s.cfg }

// Swept reports whether one whole sweep is over, in which each instance answered or timed out.
func (s *Service) Swept() bool { return s.swept.Load() }

// EmptyWhen returns the sense of empty in force: the plan's, else the configured one.
func (s *Service) EmptyWhen(f Facts) EmptyWhen {
	if f.Plan.EmptyWhen != "" {
		return EmptyWhen(f.Plan.EmptyWhen)
	}
	return s.cfg.EmptyWhen
}

// Facts returns everything but the pins, fresh from the store.
func (s *Service) Facts(ctx context.Context) (Facts, error) { return s.factsWithin(ctx, 0) }

// factsWithin returns facts that are at most so old. Concurrent callers share one read, except those
// with age 0: each of them reads for itself, so that its facts are of no time before its call.
func (s *Service) factsWithin(ctx context.Context, age time.Duration) (Facts, error) {
	if f := s.snapshot.Load(); f != nil && age > 0 && time.Since(f.at) <= age {
		return f.Facts, nil
	}
	if age == 0 {
		return s.readFacts(ctx)
	}
	return s.facts.do(ctx, "", s.cfg.InstanceTimeout, s.readFacts)
}

func (s *Service) readFacts(ctx context.Context) (Facts, error) {
	at := time.Now()
	f, err := s.store.Facts(ctx)
	if err != nil {
		return Facts{}, s.notice(err)
	}
	s.snapshot.Store(&timedFacts{f, at})
	return f, nil
}

// Instance returns one instance, and the pool's time at which it was read.
func (s *Service) Instance(ctx context.Context, name string) (Instance, PoolTime, error) {
	f, err := s.Facts(ctx)
	if err != nil {
		return Instance{}, 0, err
	}
	in, ok := f.instance(name)
	if !ok {
		return Instance{}, 0, ErrInstanceNotFound
	}
	return in, f.Now, nil
}

func (f Facts) instance(name string) (Instance, bool) {
	for _, in := range f.Instances {
		if in.Name == name {
			return in, true
		}
	}
	return Instance{}, false
}

// PutPlan stores a scaling decision; see Store.PutPlan.
func (s *Service) PutPlan(ctx context.Context, term Term, u PlanUpdate) (Plan, error) {
	p, err := s.store.PutPlan(ctx, term, u)
	if err == nil {
		s.rememberPlan(p, u)
	}
	return p, s.notice(err)
}

// waitingFor names, by the last facts, up to three instances that a rebuild waits for.
func (s *Service) waitingFor() string {
	f := s.snapshot.Load()
	if f == nil || f.Phase != Rebuilding {
		return ""
	}
	var names []string
	more := 0
	for _, in := range f.Instances {
		switch {
		case in.Answered || in.Lost:
		case len(names) == 3:
			more++
		case in.Fault != "":
			names = append(names, fmt.Sprintf("%s (%s)", in.Name, in.Fault))
		default:
			names = append(names, in.Name)
		}
	}
	if more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// notice turns a store's word that its content is gone into ErrRebuilding, and has the sweep see
// to it at once.
func (s *Service) notice(err error) error {
	if isTermError(err) {
		s.hurry()
		err = fmt.Errorf("%w: %w", ErrRebuilding, err)
	}
	if errors.Is(err, ErrRebuilding) {
		return &RebuildingError{Waiting: s.waitingFor(), Err: err}
	}
	return err
}

func (s *Service) hurry() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// foundLives returns which incarnation this broker has itself found on each instance, as of the last sweep.
func (s *Service) foundLives() map[string]string {
	if m := s.identified.Load(); m != nil {
		return *m
	}
	return map[string]string{}
}

// knownTerm returns the term this broker works in.
func (s *Service) knownTerm() (Term, error) {
	if t := s.term.Load(); t != nil {
		return *t, nil
	}
	s.hurry()
	return "", s.notice(ErrRebuilding)
}

func (s *Service) emit(kind EventKind, instance, room string, epoch Epoch, detail string) {
	s.on(Event{Kind: kind, Pool: s.cfg.Pool, Instance: instance, Room: room, Epoch: epoch, Detail: detail})
}

// settingsHash tells two sets of room settings apart. Keys are sorted by encoding/json.
func settingsHash(settings map[string]any) string {
	if len(settings) == 0 {
		return ""
	}
	b, err := json.Marshal(settings)
	if err != nil {
		return "unencodable"
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:8])
}
