package drainhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

// Broker is what the hook needs of a broker; *brokerapi.Client is one.
type Broker interface {
	// Drain sets or repeats the caller's mark and says how far its drain has come.
	Drain(ctx context.Context, pool, instance string, r brokerapi.DrainRequest) (brokerapi.Drain, error)
	// DrainStatus holds its answer until the drain is over, at most for wait.
	DrainStatus(ctx context.Context, pool, instance, owner string, wait time.Duration) (brokerapi.Drain, error)
}

// Local is what the hook needs of the media server in its pod.
type Local interface {
	// Sessions counts the client sessions. ErrGone when nothing listens at the address.
	Sessions(ctx context.Context) (int, error)
	// SetAccepting opens or closes the door to new sessions. Those that are there stay.
	SetAccepting(ctx context.Context, accept bool) error
}

// errNoBroker: some other service has answered, in JSON as it happens.
var errNoBroker = errors.New("the answer says nothing of a drain")

// ErrGone is wrapped by a Local's error when its address definitely refused the connection.
var ErrGone = errors.New("nothing listens at the local server's address")

// Config says what to drain.
type Config struct {
	Pool     string
	Instance string
	Grace    time.Duration // how long to hold at most; required
	Reason   string        // shown with the mark; default "preStop"
	Interval time.Duration // between looks while nothing changes; default 5s, at most that
	Dwell    time.Duration // how long weaker evidence of emptiness must hold; default 30s
	Log      *slog.Logger  // required
	Rand     *rand.Rand    // spreads the retries; nil: seeded by chance
}

// Outcome says how a drain ended.
type Outcome string

// The outcomes.
const (
	Drained Outcome = "drained" // nobody was left
	Gone    Outcome = "gone"    // the local server has ended, and its calls with it
	Expired Outcome = "expired" // Grace is over and it was not seen to be empty
)

// Report is how a drain ended. Rooms and Sessions are what was last known, -1 if nothing.
type Report struct {
	Outcome  Outcome
	Rooms    int
	Sessions int
	Held     time.Duration // on the hook's own clock
}

// Limits of one look. Together they stay below stepCap, so that the hook's clock
// loses nothing in ordinary running.
const (
	markTimeout  = 3 * time.Second
	localTimeout = 2 * time.Second
	maxHold      = 5 * time.Second // at the drain endpoint
	holdMargin   = 1500 * time.Millisecond
	stepCap      = 10 * time.Second // two sweeps
	repeatAfter  = time.Minute      // an unchanged state is logged again
)

// Run drains the instance and blocks until it is empty, has ended, or Grace is over. It
// returns an error only for a bad Config or when ctx ends; then the door is opened
// again if Run had closed it, and the mark stays.
func Run(ctx context.Context, c Config, b Broker, l Local) (Report, error) {
	if c.Pool == "" || c.Instance == "" || c.Grace <= 0 {
		return Report{}, errors.New("drain hook: pool, instance and a grace above zero are needed")
	}
	if c.Reason == "" {
		c.Reason = "preStop"
	}
	if c.Interval <= 0 || c.Interval > maxHold {
		c.Interval = maxHold
	}
	if c.Dwell <= 0 {
		c.Dwell = 30 * time.Second
	}
	if c.Rand == nil {
		c.Rand = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	}
	h := &hook{Config: c, broker: b, local: l, last: time.Now(), rooms: unknown, sessions: unknown}
	return h.drain(ctx)
}

type hook struct {
	Config
	broker Broker
	local  Local

	last    time.Time     // of the last reading of the clock
	elapsed time.Duration // sum of the capped steps between readings

	rooms, sessions int // last known

	said   string        // what was logged last
	saidAt time.Duration // and when
}

func (h *hook) drain(ctx context.Context) (Report, error) {
	r := rules{grace: h.Grace, interval: h.Interval, dwell: h.Dwell}
	var s state
	for {
		begin := h.now()
		v := h.look(ctx)
		if ctx.Err() != nil {
			return h.interrupted(ctx, s)
		}
		var do step
		s, do = next(r, s, v, h.now())
		switch do.do {
		case end:
			return h.report(do.outcome), nil
		case shut:
			s = s.closed(h.door(ctx, false), h.now())
		case reopen:
			h.Log.Info("somebody slipped in; the door is open again", "rooms", v.rooms, "sessions", v.local)
			h.door(ctx, true)
		}
		if !h.pause(ctx, do.wait-(h.now()-begin)) {
			return h.interrupted(ctx, s)
		}
	}
}

// look asks the broker and the local server at once.
func (h *hook) look(ctx context.Context) seen {
	v := seen{rooms: unknown, sessions: unknown, age: unknown, local: unknown}
	var brokerErr, localErr error
	var wg sync.WaitGroup
	var d brokerapi.Drain
	wg.Go(func() { d, brokerErr = h.ask(ctx, h.Grace-h.elapsed) })
	wg.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, localTimeout)
		defer cancel()
		var n int
		if n, localErr = h.local.Sessions(ctx); localErr == nil {
			v.local = n
		}
	})
	wg.Wait()
	v.gone = errors.Is(localErr, ErrGone)
	if brokerErr == nil {
		v.answered, v.empty, v.rooms = true, d.Result == brokerapi.DrainEmpty, d.RoomsLeft
		if d.Sessions != nil {
			v.sessions = *d.Sessions
		}
		if d.AgeMS != nil {
			v.age = time.Duration(*d.AgeMS) * time.Millisecond
		}
	}
	h.remember(v)
	h.now()
	h.tell(v, brokerErr, localErr)
	return v
}

// ask sets the mark, or repeats it with the time that is left, since a broker may have
// lost it with its store; then it waits at the drain endpoint.
func (h *hook) ask(ctx context.Context, left time.Duration) (brokerapi.Drain, error) {
	left = max(left, time.Second).Round(time.Millisecond)
	marking, cancel := context.WithTimeout(ctx, markTimeout)
	defer cancel()
	owner := "hook"
	d, err := h.broker.Drain(marking, h.Pool, h.Instance, brokerapi.DrainRequest{Owner: owner, Reason: h.Reason, Grace: left.String()})
	if err == nil && d.Result == "" {
		err = errNoBroker
	}
	if err != nil || d.Result != brokerapi.DrainWaiting {
		return d, err
	}
	hold := min(h.Interval, left)
	waiting, cancel := context.WithTimeout(ctx, hold+holdMargin)
	defer cancel()
	later, err := h.broker.DrainStatus(waiting, h.Pool, h.Instance, owner, hold)
	if err != nil || later.Result == "" {
		// The broker has answered in this look; that it can not hold changes nothing.
		return d, nil
	}
	return later, nil
}

// door closes or opens the local server's door and reports whether that is certain.
func (h *hook) door(ctx context.Context, accept bool) bool {
	ctx, cancel := context.WithTimeout(ctx, localTimeout)
	defer cancel()
	if err := h.local.SetAccepting(ctx, accept); err != nil {
		h.Log.Warn("the local server's door does not move", "accept", accept, "error", err)
		return false
	}
	return true
}

// now reads the hook's clock.
func (h *hook) now() time.Duration {
	t := time.Now()
	h.elapsed += min(max(0, t.Sub(h.last)), stepCap)
	h.last = t
	return h.elapsed
}

// pause waits for d, shortened by chance to three quarters of it, so that the
// hooks of many pods do not return to a broker in step. False when ctx has ended.
func (h *hook) pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	d -= time.Duration(h.Rand.Int64N(int64(d)/4 + 1))
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (h *hook) interrupted(ctx context.Context, s state) (Report, error) {
	if s.shut {
		h.door(context.WithoutCancel(ctx), true)
	}
	return h.report(""), fmt.Errorf("draining %s: interrupted: %w", h.Instance, context.Cause(ctx))
}

func (h *hook) report(o Outcome) Report {
	return Report{Outcome: o, Rooms: h.rooms, Sessions: h.sessions, Held: h.elapsed}
}

// remember keeps the last known counts; the local one is nearer.
func (h *hook) remember(v seen) {
	if v.answered {
		h.rooms = v.rooms
	}
	switch {
	case v.local != unknown:
		h.sessions = v.local
	case v.sessions != unknown:
		h.sessions = v.sessions
	}
}
