package janus

import (
	"sync"
	"time"
)

// lifeTTL bounds how long is believed what was learned of a server: a restart shows in its marker, and
// set_session_timeout changes a value without one.
const lifeTTL = time.Minute

// life is what is known of one life of a server.
type life struct {
	incarnation string // "" when no marker was there
	keyed       bool   // its videoroom has an admin_key
	timeout     time.Duration
	learned     time.Time
	private     bool // a private room was made there since the last look
	hidden      bool // private rooms may be there that nobody can list
}

// lives remembers by address.
type lives struct {
	mu    sync.Mutex
	known map[string]life
}

// take is get for a look: it also takes off the note that a private room was made, so that only one made from
// now on, or put back, counts for the next look.
func (l *lives) take(address string) (life, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, there := l.known[address]
	if there {
		kept := k
		kept.private = false
		l.known[address] = kept
	}
	return k, time.Since(k.learned) < lifeTTL
}

// get returns what is known of an address and whether it is fresh.
func (l *lives) get(address string) (life, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.known[address]
	return k, time.Since(k.learned) < lifeTTL
}

// learn puts down what a look has found and returns it with what follows from the time before: where private rooms
// may have been made after the admin_key had gone, they may be hidden for the rest of this life.
func (l *lives) learn(address string, found life, private bool) life {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.known[address]
	same := before.incarnation == found.incarnation && found.incarnation != ""
	found.hidden = !found.keyed && (private || before.private || before.hidden && same)
	found.learned = time.Now()
	for a, k := range l.known {
		if time.Since(k.learned) > 10*lifeTTL {
			delete(l.known, a)
		}
	}
	l.known[address] = found
	return found
}

// madePrivate puts down that a private room is being made.
func (l *lives) madePrivate(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.known[address]
	k.private = true
	l.known[address] = k
}
