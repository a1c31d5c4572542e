// Package simjanus is a media server without media: the part of Janus 1.1 that a broker and a participant use (admin API,
// sessions over HTTP, videoroom), for machines that have no Janus. It answers as Janus does, error layers included.
package simjanus

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Config is what the configuration files of a Janus would say. The zero value has no admin secret.
type Config struct {
	Name           string
	AdminSecret    string
	AdminKey       string        // of the videoroom; "" = none is configured
	APISecret      string        // "" = none is wanted
	StringIDs      bool          // rooms have strings as ids
	SessionTimeout time.Duration // 0 = a minute
}

// pollTime is how long a long poll waits for an event.
const pollTime = 30 * time.Second

const plugin = "janus.plugin.videoroom"

// Server is one media server. Make it with New and give its handlers to HTTP servers; Close ends
// its clock.
type Server struct {
	c    Config
	stop chan struct{}
	over chan struct{}

	mu        sync.Mutex
	accepting bool
	sessions  map[uint64]*session
	rooms     map[string]*room // by the id's text
}

type session struct {
	id      uint64
	seen    time.Time
	expired bool // marked by one pass of the watchdog; the next ends it
	handles map[uint64]*handle
	events  []any
	wake    chan struct{} // holds a token while there is news
}

type handle struct {
	id      uint64
	session *session
	role    string // "", publisher, subscriber
	room    any    // the id, as given
	user    uint64
	display string
}

// New returns an empty server and starts the clock of its session timeouts.
func New(c Config) *Server {
	if c.SessionTimeout == 0 {
		c.SessionTimeout = time.Minute
	}
	s := &Server{c: c, stop: make(chan struct{}), over: make(chan struct{}), accepting: true, sessions: map[uint64]*session{}, rooms: map[string]*room{}}
	go s.watch()
	return s
}

// Close stops the clock. Requests are answered as before.
func (s *Server) Close() {
	close(s.stop)
	<-s.over
}

// watch ends sessions as Janus does: a look every 2 s marks a silent one, the next look ends it.
func (s *Server) watch() {
	defer close(s.over)
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case now := <-tick.C:
			s.mu.Lock()
			for _, ses := range s.sessions {
				switch {
				case now.Sub(ses.seen) < s.c.SessionTimeout:
				case ses.expired:
					s.dropSession(ses)
				default:
					ses.expired = true
					ses.push(map[string]any{"janus": "timeout", "session_id": ses.id})
				}
			}
			s.mu.Unlock()
		}
	}
}

func (ses *session) push(event any) {
	ses.events = append(ses.events, event)
	select {
	case ses.wake <- struct{}{}:
	default:
	}
}

func (ses *session) touch() { ses.seen, ses.expired = time.Now(), false }

func (s *Server) newSession(id uint64) (*session, *failure) {
	if !s.accepting {
		return nil, fail(472, "Currently not accepting new sessions")
	}
	if id == 0 {
		id = freshID(s.sessions)
	} else if s.sessions[id] != nil {
		return nil, fail(468, "Session ID already in use")
	}
	ses := &session{id: id, handles: map[uint64]*handle{}, wake: make(chan struct{}, 1)}
	ses.touch()
	s.sessions[id] = ses
	return ses, nil
}

func (s *Server) dropSession(ses *session) {
	for _, h := range ses.handles {
		s.detach(h)
	}
	delete(s.sessions, ses.id)
	ses.push(nil) // wakes a poll, which finds the session gone
}

// detach ends a handle and its place in a room.
func (s *Server) detach(h *handle) {
	s.leave(h)
	delete(h.session.handles, h.id)
}

// freshID returns an id that is not in use, below 2^53.
func freshID[V any](used map[uint64]V) uint64 {
	for {
		id := rand.Uint64N(1<<53-1) + 1
		if _, taken := used[id]; !taken {
			return id
		}
	}
}

func keys[V any](m map[uint64]V) []uint64 {
	list := make([]uint64, 0, len(m))
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// failure is an error of the core or of the videoroom, with its code.
type failure struct {
	code   int
	reason string
}

func fail(code int, reason string) *failure { return &failure{code, reason} }

func noSession(id uint64) *failure {
	return fail(458, "No such session "+strconv.FormatUint(id, 10))
}

func noHandle(h, ses uint64) *failure {
	return fail(459, "No such handle "+strconv.FormatUint(h, 10)+" in session "+strconv.FormatUint(ses, 10))
}
