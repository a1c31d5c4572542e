package load_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/test/lab/load"
	"github.com/roomscaler/roomscaler/test/lab/simjanus"
)

// world is one simulated media server, and a directory that places every room on it.
type world struct {
	api, admin http.Handler
	handler    atomic.Pointer[http.Handler] // of the Janus API
	server     *httptest.Server
	cause      string
	refusals   int

	mu     sync.Mutex
	kinds  []string
	closed []string
	joined chan struct{} // one token for each join
}

func (w *world) Open(ctx context.Context, room string, _ int) (brokerapi.Pin, error) {
	if w.refusals > 0 {
		w.refusals--
		return brokerapi.Pin{}, errors.New("no capacity")
	}
	w.videoroom(ctx, map[string]any{"request": "create", "room": 7, "pin": "p", "description": room})
	return brokerapi.Pin{Room: room, Instance: "janus-0", JanusRoom: json.RawMessage("7"), PIN: "p"}, nil
}

func (w *world) Close(ctx context.Context, room string) error {
	w.videoroom(ctx, map[string]any{"request": "destroy", "room": 7})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = append(w.closed, room)
	return nil
}

func (w *world) Current(string) int { return 1 }
func (w *world) Cause(int) string   { return w.cause }

func (w *world) videoroom(ctx context.Context, request map[string]any) {
	body, err := json.Marshal(map[string]any{"janus": "message_plugin", "transaction": "t", "plugin": "janus.plugin.videoroom", "request": request, "admin_secret": ""})
	if err != nil {
		panic(err)
	}
	w.admin.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, "/admin", bytes.NewReader(body)))
}

// run lets two people into one room that is to hold for so long; once both have joined, fault happens.
func run(t *testing.T, w *world, hold time.Duration, fault func()) load.Stats {
	t.Helper()
	s := simjanus.New(simjanus.Config{})
	defer s.Close()
	w.api, w.admin, w.joined = s.API(), s.Admin(), make(chan struct{}, 2)
	w.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { (*w.handler.Load()).ServeHTTP(rw, r) }))
	w.handler.Store(&w.api)
	defer w.server.Close()
	l := load.New(load.Config{
		Directory: w, Lives: w, HTTP: w.server.Client(), Pace: 20 * time.Millisecond, Patience: time.Minute,
		URL: func(brokerapi.Pin) string { return w.server.URL + "/janus" },
		Log: slog.New(slog.DiscardHandler),
		OnEvent: func(e load.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.kinds = append(w.kinds, strings.TrimSuffix(fmt.Sprint(e.Kind, ":", e.Cause), ":"))
			if e.Kind == load.Joined {
				w.joined <- struct{}{}
			}
		},
	}, []load.Room{{Name: "a", Hold: hold, People: 2}})
	over := make(chan struct{})
	go func() { l.Run(t.Context()); close(over) }()
	for range 2 {
		<-w.joined
	}
	if fault != nil {
		fault()
	}
	<-over
	return l.Stats()
}

func TestLoad_Run(t *testing.T) {
	const ages = time.Hour
	check := func(t *testing.T, w *world, s load.Stats, last string) {
		t.Helper()
		if got := w.kinds[len(w.kinds)-1]; got != last {
			t.Errorf("the last event: got %s of %v, want %s", got, w.kinds, last)
		}
		if s.People != 0 || s.Open != 0 || s.Rooms != 1 {
			t.Errorf("got %+v, want one room and nobody left", s)
		}
		if len(w.closed) != 1 {
			t.Errorf("torn down: %v, want once", w.closed)
		}
	}
	t.Run("a room closes in peace after its time", func(t *testing.T) {
		w := &world{refusals: 1}
		s := run(t, w, 700*time.Millisecond, nil)
		check(t, w, s, "closed")
		if s.Attempts != 1 || s.Cut != 0 {
			t.Errorf("got %+v, want one repeated create and no cut", s)
		}
	})
	t.Run("the end of the server cuts it, by the cause of that end", func(t *testing.T) {
		w := &world{cause: "scale-in"}
		s := run(t, w, ages, func() {
			var dead http.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
			w.handler.Store(&dead)
		})
		check(t, w, s, "cut:scale-in")
		if s.CutBy["scale-in"] != 1 || s.Cut != 1 {
			t.Errorf("got %+v, want one cut", s)
		}
	})
	t.Run("the end of a session on a server that goes on cuts it by another cause", func(t *testing.T) {
		w := &world{}
		s := run(t, w, ages, func() {
			fresh := simjanus.New(simjanus.Config{}) // the server has started anew
			t.Cleanup(fresh.Close)
			api := fresh.API()
			w.handler.Store(&api)
		})
		check(t, w, s, "cut:other")
	})
	t.Run("the end of the room alone cuts it", func(t *testing.T) {
		w := &world{}
		check(t, w, run(t, w, ages, func() { w.videoroom(t.Context(), map[string]any{"request": "destroy", "room": 7}) }), "cut:other")
	})
}
