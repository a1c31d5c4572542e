package load

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/test/januscli"
)

const (
	callTimeout = 5 * time.Second // of one request
	repeatAfter = 300 * time.Millisecond
	// strikes are how many times in a row a server must be silent or unreachable before its room counts as
	// cut; a definite "no such session" counts at once.
	strikes = 3
)

// errCut is the cause of the end of a room's context when the room was cut.
type errCut struct{ detail string }

func (e errCut) Error() string { return e.detail }

// host is the life of a room, from its opening to its end.
func (l *Load) host(ctx context.Context, r Room) {
	pin, ok := l.open(ctx, r)
	if !ok {
		return
	}
	life := l.c.Lives.Current(pin.Instance)
	l.note(Event{Kind: Opened, Room: r, Instance: pin.Instance})
	stay, cut := context.WithCancelCause(ctx)
	stay, done := context.WithTimeout(stay, r.Hold)
	var wg sync.WaitGroup
	for i := range r.People {
		wg.Go(func() {
			if !sleep(stay, time.Duration(i)*repeatAfter) {
				return
			}
			if err := l.attend(stay, r, pin, i); err != nil {
				cut(errCut{err.Error()})
			}
		})
	}
	wg.Wait()
	cause := context.Cause(stay)
	done()
	cut(nil)
	var lost errCut
	if errors.As(cause, &lost) {
		why := Other
		if c := l.c.Lives.Cause(life); c != "" {
			why = c
		}
		l.note(Event{Kind: Cut, Room: r, Instance: pin.Instance, Cause: why, Detail: lost.detail})
	} else {
		l.note(Event{Kind: Closed, Room: r, Instance: pin.Instance})
	}
	l.close(ctx, r)
}

// open asks for the room until there is one, for as long as Patience.
func (l *Load) open(ctx context.Context, r Room) (brokerapi.Pin, bool) {
	begin := time.Now()
	for {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		pin, err := l.c.Directory.Open(call, r.Name, r.People)
		cancel()
		if err == nil {
			return pin, true
		}
		if time.Since(begin) > l.c.Patience {
			l.note(Event{Kind: Refused, Room: r, Detail: err.Error()})
			l.c.Log.Warn("room never opened", "room", r.Name, "error", err)
			return brokerapi.Pin{}, false
		}
		l.retried()
		l.c.Log.Info("room does not open yet", "room", r.Name, "error", err)
		if !sleep(ctx, repeatAfter) {
			return brokerapi.Pin{}, false
		}
	}
}

// close tears the room down; also when the load is ending, since whoever leaves a room does so.
func (l *Load) close(ctx context.Context, r Room) {
	for i := range 2 {
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		err := l.c.Directory.Close(call, r.Name)
		cancel()
		if err == nil {
			return
		}
		l.c.Log.Info("room does not close", "room", r.Name, "error", err)
		if i == 0 && !sleep(ctx, repeatAfter) {
			return
		}
	}
}

// attend is one person: it joins, stays until ctx ends, and leaves. An error means that the room is cut.
func (l *Load) attend(ctx context.Context, r Room, pin brokerapi.Pin, who int) error {
	s, err := l.join(ctx, pin)
	if err != nil || s == nil {
		return err
	}
	l.note(Event{Kind: Joined, Room: r, Instance: pin.Instance})
	defer l.note(Event{Kind: Left, Room: r, Instance: pin.Instance})
	// All signs of life would otherwise come at once.
	h := fnv.New32a()
	fmt.Fprint(h, r.Name, who)
	wait := time.Duration(h.Sum32()) % l.c.Pace
	for turn := 0; sleep(ctx, wait); turn++ {
		wait = l.c.Pace
		err := l.repeat(ctx, func(ctx context.Context) error {
			if who == 0 && turn%3 == 2 { // somebody looks whether the room itself is still there
				return exists(ctx, s, pin)
			}
			return s.KeepAlive(ctx)
		})
		if err != nil {
			return err
		}
	}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	if err := s.Close(call); err != nil {
		l.c.Log.Info("session does not close", "room", r.Name, "error", err)
	}
	return nil
}

func (l *Load) join(ctx context.Context, pin brokerapi.Pin) (*januscli.Session, error) {
	var s *januscli.Session
	err := l.repeat(ctx, func(ctx context.Context) error {
		var err error
		if s, err = januscli.Open(ctx, l.c.URL(pin), januscli.Options{HTTP: l.c.HTTP}); err != nil {
			return err
		}
		if err := s.Join(ctx, pin.JanusRoom, pin.PIN); err != nil {
			call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
			defer cancel()
			s.Close(call) // the join's error is the one that tells
			s = nil
			return err
		}
		return nil
	})
	return s, err
}

// repeat makes a call until it succeeds. It returns an error once the room is cut for sure, and nil when ctx has
// ended.
func (l *Load) repeat(ctx context.Context, do func(context.Context) error) error {
	var err error
	for range strikes {
		// A call under way when the room's time is over is finished first: a session half made would stay.
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		err = do(call)
		cancel()
		var refused *januscli.Error
		switch {
		case err == nil:
			return nil
		case errors.As(err, &refused) && refused.Code != 472: // 472: no new sessions now
			return err
		case errors.Is(err, errNoRoom):
			return err
		}
		if !sleep(ctx, repeatAfter) {
			return nil
		}
	}
	return err
}

var errNoRoom = errors.New("the room is not there any more")

func exists(ctx context.Context, s *januscli.Session, pin brokerapi.Pin) error {
	answer, err := s.Ask(ctx, map[string]any{"request": "exists", "room": pin.JanusRoom})
	if err != nil {
		return err
	}
	if there, _ := answer["exists"].(bool); !there {
		return errNoRoom
	}
	return nil
}
