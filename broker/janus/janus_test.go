package janus_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/backendtest"
	"github.com/roomscaler/roomscaler/broker/janus"
	"github.com/roomscaler/roomscaler/test/januscli"
	"github.com/roomscaler/roomscaler/test/procs"
)

const (
	adminSecret = "an-admin-secret"
	adminKey    = "an-admin-key"
)

var roomKey = broker.RoomKey("a room key")

// server is a real Janus with a backend that reaches it through a Faulty.
type server struct {
	*janus.Backend
	target  broker.Target
	process *procs.Janus
	faults  *backendtest.Faulty
}

func start(t *testing.T, o procs.JanusOptions, key string) *server {
	t.Helper()
	if o.AdminSecret == "" {
		o.AdminSecret = adminSecret
	}
	j, err := procs.StartJanus(t.Context(), o)
	procs.Need(t, err)
	s := &server{process: j, faults: backendtest.NewFaulty(t, j.AdminURL())}
	t.Cleanup(func() { s.process.Kill() })
	s.Backend = janus.New(janus.Options{AdminSecret: o.AdminSecret, AdminKey: key, Key: roomKey})
	s.target = broker.Target{Pool: "conference", Instance: "janus-0", Address: s.faults.Address(), StringIDs: o.StringIDs}
	return s
}

func (s *server) restart(t *testing.T, change func(*procs.JanusOptions)) {
	t.Helper()
	s.process.Kill()
	o := s.process.Options()
	if change != nil {
		change(&o)
	}
	j, err := procs.StartJanus(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	s.process = j
}

func (s *server) look(t *testing.T, viewers bool) broker.Look {
	t.Helper()
	l, err := s.Look(t.Context(), s.target, broker.LookOptions{Viewers: viewers})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// client opens a session as any client of the server can.
func (s *server) client(t *testing.T) *januscli.Session {
	t.Helper()
	c, err := januscli.Open(t.Context(), s.process.HTTPURL(), januscli.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func roomID(at broker.Target, e broker.Epoch) any {
	if at.StringIDs {
		return e.String()
	}
	return json.RawMessage(e.String())
}

func join(t *testing.T, c *januscli.Session, at broker.Target, r broker.RoomSpec) {
	t.Helper()
	if err := c.Join(t.Context(), roomID(at, r.Epoch), roomKey.PIN(at.Pool, r.Room, r.Epoch)); err != nil {
		t.Fatal(err)
	}
}

// watch subscribes to the room's dummy publisher: a viewer that needs no media.
func (s *server) watch(t *testing.T, c *januscli.Session, at broker.Target, r broker.RoomSpec) {
	t.Helper()
	people, err := c.Ask(t.Context(), map[string]any{"request": "listparticipants", "room": roomID(at, r.Epoch)})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range people["participants"].([]any) {
		if p := p.(map[string]any); p["dummy"] == true {
			if err := c.Watch(t.Context(), roomID(at, r.Epoch), roomKey.PIN(at.Pool, r.Room, r.Epoch), p["id"]); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the viewer is in the room", func() bool {
				o, err := s.Inspect(t.Context(), at, broker.RoomRef{Room: r.Room, Epoch: r.Epoch})
				return err == nil && o.Viewers > 0
			})
			return
		}
	}
	t.Fatalf("no dummy publisher in %v", people)
}

func closer(t *testing.T, c *januscli.Session) func() {
	return func() {
		t.Helper()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func asks(request string) func(string, []byte) bool {
	return func(_ string, body []byte) bool { return bytes.Contains(body, []byte(`"request":"`+request+`"`)) }
}

func TestBackend(t *testing.T) {
	for _, c := range []struct {
		name      string
		stringIDs bool
		key       string
	}{
		{"numbers as ids, no admin_key", false, ""},
		{"numbers as ids, admin_key", false, adminKey},
		{"strings as ids, no admin_key", true, ""},
		{"strings as ids, admin_key", true, adminKey},
	} {
		t.Run(c.name, func(t *testing.T) {
			backendtest.Run(t, func(t *testing.T) *backendtest.Server {
				s := start(t, procs.JanusOptions{StringIDs: c.stringIDs, AdminKey: c.key}, c.key)
				target := s.target
				target.StringIDs = false // the suite takes it from the look
				return &backendtest.Server{
					Backend: s,
					Target:  target,
					Join: func(t *testing.T, at broker.Target, r broker.RoomSpec) func() {
						c := s.client(t)
						join(t, c, at, r)
						return func() {
							// A session that only ends is out of its room a moment later.
							if err := c.Leave(t.Context()); err != nil {
								t.Error(err)
							}
							closer(t, c)()
						}
					},
					Watch: func(t *testing.T, at broker.Target, r broker.RoomSpec) func() {
						c := s.client(t)
						s.watch(t, c, at, r)
						return closer(t, c)
					},
					Watchable: map[string]any{"dummy_publisher": true},
					Restart:   func(t *testing.T) { s.restart(t, nil) },
					Stop: func(t *testing.T) {
						s.process.Kill()
						s.faults.Close()
					},
					Faults:   s.faults,
					Creates:  asks("create"),
					Destroys: asks("destroy"),
				}
			})
		})
	}
}

func spec(name string, e broker.Epoch) broker.RoomSpec {
	return broker.RoomSpec{RoomMark: broker.RoomMark{Pool: "conference", Room: name, Epoch: e}}
}

func (s *server) create(t *testing.T, r broker.RoomSpec) {
	t.Helper()
	if err := s.Create(t.Context(), s.target, r); err != nil {
		t.Fatal(err)
	}
}

// eventually polls until what is looked for is there.
func eventually(t *testing.T, what string, there func() bool) {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !there() {
		select {
		case <-deadline.C:
			t.Fatalf("in a minute it never came that %s", what)
		case <-tick.C:
		}
	}
}
