package drainhook_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/drainhook"
)

// world is one instance with its broker, as both would answer. The broker sweeps
// every 5 seconds and answers from its last sweep alone.
type world struct {
	mu        sync.Mutex
	sessions  int
	rooms     int
	accepting bool
	brokerErr error // what the broker answers instead
	stranger  bool  // something else answers in the broker's place
	localErr  error
	doorErr   error
	onShut    func(*world)
	suspend   time.Duration // the machine stands still for so long, once

	marked        bool
	asked         []brokerapi.DrainRequest
	swept         time.Time
	sweptSessions int
}

func newWorld(sessions, rooms int) *world {
	return &world{sessions: sessions, rooms: rooms, accepting: true, swept: time.Now(), sweptSessions: sessions}
}

func (w *world) set(f func(*world)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(w)
}

// sweep runs until ctx ends.
func (w *world) sweep(ctx context.Context) {
	t := time.NewTicker(5 * time.Second)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			w.set(func(w *world) { w.swept, w.sweptSessions = time.Now(), w.sessions })
		}
	}
}

func (w *world) answer() (brokerapi.Drain, error) {
	if w.brokerErr != nil {
		return brokerapi.Drain{}, w.brokerErr
	}
	if w.stranger {
		return brokerapi.Drain{}, nil // as {"status":"ok"} is read
	}
	n, age := w.sweptSessions, time.Since(w.swept).Milliseconds()
	d := brokerapi.Drain{Result: brokerapi.DrainWaiting, RoomsLeft: w.rooms, Sessions: &n, AgeMS: &age}
	if w.marked && n == 0 && w.rooms == 0 {
		d.Result = brokerapi.DrainEmpty
	}
	return d, nil
}

func (w *world) Drain(_ context.Context, pool, instance string, r brokerapi.DrainRequest) (brokerapi.Drain, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if pool != "p" || instance != "janus-0" || r.Owner != "hook" {
		return brokerapi.Drain{}, fmt.Errorf("asked for %s/%s as %s", pool, instance, r.Owner)
	}
	w.asked = append(w.asked, r)
	w.marked = w.marked || w.brokerErr == nil
	return w.answer()
}

func (w *world) DrainStatus(ctx context.Context, _, _, _ string, wait time.Duration) (brokerapi.Drain, error) {
	stop := time.NewTimer(wait)
	defer stop.Stop()
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	for {
		w.mu.Lock()
		d, err := w.answer()
		w.mu.Unlock()
		if err != nil || d.Result == brokerapi.DrainEmpty {
			return d, err
		}
		select {
		case <-stop.C:
			return d, nil
		case <-ctx.Done():
			return d, ctx.Err()
		case <-poll.C:
		}
	}
}

func (w *world) Sessions(context.Context) (int, error) {
	w.mu.Lock()
	stop := w.suspend
	w.suspend = 0
	w.mu.Unlock()
	time.Sleep(stop)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sessions, w.localErr
}

func (w *world) SetAccepting(_ context.Context, accept bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.doorErr != nil {
		return w.doorErr
	}
	if w.accepting = accept; !accept && w.onShut != nil {
		w.onShut(w)
	}
	return nil
}

type result struct {
	report drainhook.Report
	err    error
	took   time.Duration
	log    string
}

// drain runs the hook in w's bubble, with the broker sweeping beside it.
func drain(t *testing.T, ctx context.Context, w *world, grace time.Duration) result {
	t.Helper()
	sweeping, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { w.sweep(sweeping) })
	defer wg.Wait()
	defer stop()
	var log bytes.Buffer
	begin := time.Now()
	r, err := drainhook.Run(ctx, drainhook.Config{Pool: "p", Instance: "janus-0", Grace: grace, Log: slog.New(slog.NewTextHandler(&log, nil))}, w, w)
	return result{r, err, time.Since(begin), log.String()}
}

// later does something to the world at a time from now.
func later(t *testing.T, w *world, d time.Duration, f func(*world)) {
	timer := time.AfterFunc(d, func() { w.set(f) })
	t.Cleanup(func() { timer.Stop() })
}

func (r result) want(t *testing.T, o drainhook.Outcome, atLeast, atMost time.Duration) {
	t.Helper()
	if r.err != nil || r.report.Outcome != o || r.took < atLeast || r.took > atMost {
		t.Errorf("got %q after %s (error %v), want %q after %s to %s\n%s", r.report.Outcome, r.took, r.err, o, atLeast, atMost, r.log)
	}
}

// All times below are a bubble's: they are exact and cost nothing.
func TestRun(t *testing.T) {
	none := func(w *world) { w.sessions, w.rooms = 0, 0 }
	in := func(name string, f func(*testing.T)) {
		t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
	}

	in("an empty instance ends within two sweeps, behind a closed door", func(t *testing.T) {
		w := newWorld(0, 0)
		drain(t, t.Context(), w, time.Hour).want(t, drainhook.Drained, 0, 12*time.Second)
		if w.accepting {
			t.Error("the door is open")
		}
	})
	in("people hold it for as long as they stay", func(t *testing.T) {
		w := newWorld(5, 2)
		later(t, w, 20*time.Minute, none)
		drain(t, t.Context(), w, time.Hour).want(t, drainhook.Drained, 20*time.Minute, 20*time.Minute+20*time.Second)
	})
	in("somebody who slips in while the door closes is waited for", func(t *testing.T) {
		w := newWorld(0, 0)
		w.onShut = func(w *world) { w.sessions, w.onShut = 1, nil }
		later(t, w, 10*time.Minute, none)
		r := drain(t, t.Context(), w, time.Hour)
		r.want(t, drainhook.Drained, 10*time.Minute, 10*time.Minute+20*time.Second)
		if !strings.Contains(r.log, "slipped in") {
			t.Errorf("nothing is said of it: %s", r.log)
		}
	})
	in("the grace ends it with the people counted", func(t *testing.T) {
		r := drain(t, t.Context(), newWorld(5, 2), time.Hour)
		r.want(t, drainhook.Expired, time.Hour, time.Hour+10*time.Second)
		if r.report.Rooms != 2 || r.report.Sessions != 5 {
			t.Errorf("got %+v, want 2 rooms and 5 sessions", r.report)
		}
	})
	in("a broker that is away for a while ends nothing", func(t *testing.T) {
		w := newWorld(5, 2)
		later(t, w, time.Minute, func(w *world) { w.brokerErr = errors.New("connection refused") })
		later(t, w, 30*time.Minute, func(w *world) { w.brokerErr = nil })
		later(t, w, 40*time.Minute, none)
		drain(t, t.Context(), w, time.Hour).want(t, drainhook.Drained, 40*time.Minute, 40*time.Minute+20*time.Second)
	})
	in("without a broker the local count decides", func(t *testing.T) {
		w := newWorld(5, 2)
		w.brokerErr = errors.New("connection refused")
		later(t, w, 10*time.Minute, none)
		drain(t, t.Context(), w, time.Hour).want(t, drainhook.Drained, 10*time.Minute+30*time.Second, 11*time.Minute)
	})
	for _, code := range []string{brokerapi.CodeUnauthorized, brokerapi.CodeForbidden, brokerapi.CodeInstanceNotFound, brokerapi.CodePoolNotFound, brokerapi.CodeUnknown} {
		in("a broker that answers "+code+" is waited on with a loud word of advice", func(t *testing.T) {
			w := newWorld(5, 2)
			w.brokerErr = &brokerapi.Problem{Code: code}
			later(t, w, 10*time.Minute, none)
			r := drain(t, t.Context(), w, time.Hour)
			r.want(t, drainhook.Drained, 10*time.Minute, 11*time.Minute)
			if !strings.Contains(r.log, "level=ERROR") || !strings.Contains(r.log, "advice=") {
				t.Errorf("not loud: %s", r.log)
			}
		})
	}
	in("something else in the broker's place is no broker", func(t *testing.T) {
		w := newWorld(5, 2)
		w.stranger = true
		later(t, w, 10*time.Minute, none)
		r := drain(t, t.Context(), w, time.Hour)
		r.want(t, drainhook.Drained, 10*time.Minute+30*time.Second, 11*time.Minute)
		if !strings.Contains(r.log, "level=ERROR") || !strings.Contains(r.log, "advice=") {
			t.Errorf("not loud: %s", r.log)
		}
	})
	in("a broker that is rebuilding its directory is waited on", func(t *testing.T) {
		w := newWorld(5, 2)
		w.brokerErr = &brokerapi.Problem{Code: brokerapi.CodeRebuilding}
		later(t, w, 10*time.Minute, func(w *world) { w.brokerErr = nil })
		later(t, w, 20*time.Minute, none)
		drain(t, t.Context(), w, time.Hour).want(t, drainhook.Drained, 20*time.Minute, 21*time.Minute)
	})
	in("with nothing to be read it holds to the end", func(t *testing.T) {
		w := newWorld(0, 0)
		w.brokerErr, w.localErr = errors.New("no route"), errors.New("timeout")
		drain(t, t.Context(), w, time.Hour).want(t, drainhook.Expired, time.Hour, time.Hour+10*time.Second)
	})
	in("a machine that stood still ends nothing early", func(t *testing.T) {
		w := newWorld(5, 2)
		w.suspend = 3 * time.Hour
		later(t, w, 3*time.Hour+30*time.Minute, none)
		drain(t, t.Context(), w, time.Hour).want(t, drainhook.Drained, 3*time.Hour+30*time.Minute, 3*time.Hour+31*time.Minute)
	})
	in("a local server that dies ends it", func(t *testing.T) {
		w := newWorld(5, 2)
		later(t, w, 10*time.Minute, func(w *world) { w.localErr = fmt.Errorf("admin API: %w", drainhook.ErrGone) })
		drain(t, t.Context(), w, time.Hour).want(t, drainhook.Gone, 10*time.Minute, 11*time.Minute)
	})
	in("a wrong local address does not", func(t *testing.T) {
		w := newWorld(5, 2)
		w.localErr = fmt.Errorf("admin API: %w", drainhook.ErrGone)
		drain(t, t.Context(), w, time.Hour).want(t, drainhook.Expired, time.Hour, time.Hour+10*time.Second)
	})
	in("a door that does not move holds no empty instance", func(t *testing.T) {
		w := newWorld(0, 0)
		w.doorErr = errors.New("wrong secret")
		drain(t, t.Context(), w, time.Hour).want(t, drainhook.Drained, 30*time.Second, 45*time.Second)
	})
	in("the mark is repeated with the time that is left", func(t *testing.T) {
		w := newWorld(5, 2)
		later(t, w, 30*time.Minute, none)
		drain(t, t.Context(), w, time.Hour)
		first, last := w.asked[0].Grace, w.asked[len(w.asked)-1].Grace
		d, err := time.ParseDuration(last)
		if first != "1h0m0s" || err != nil || d > 30*time.Minute || d < 29*time.Minute {
			t.Errorf("graces from %s to %s", first, last)
		}
	})
	in("an interrupted hook opens the door that it had closed", func(t *testing.T) {
		w := newWorld(0, 0)
		ctx, cancel := context.WithCancel(t.Context())
		w.onShut = func(*world) { cancel() }
		r := drain(t, ctx, w, time.Hour)
		if !errors.Is(r.err, context.Canceled) || !w.accepting {
			t.Errorf("got error %v, accepting %v", r.err, w.accepting)
		}
	})
	in("an unchanged state is said once a minute, not at every look", func(t *testing.T) {
		r := drain(t, t.Context(), newWorld(5, 2), time.Hour)
		if n := strings.Count(r.log, "\n"); n < 55 || n > 65 {
			t.Errorf("%d lines in an hour", n)
		}
	})
}

func TestRun_BadConfig(t *testing.T) {
	for _, c := range []drainhook.Config{
		{Instance: "janus-0", Grace: time.Hour},
		{Pool: "p", Grace: time.Hour},
		{Pool: "p", Instance: "janus-0"},
	} {
		if _, err := drainhook.Run(t.Context(), c, nil, nil); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}
