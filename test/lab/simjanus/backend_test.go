package simjanus_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/backendtest"
	"github.com/roomscaler/roomscaler/broker/janus"
	"github.com/roomscaler/roomscaler/test/januscli"
	"github.com/roomscaler/roomscaler/test/lab/simjanus"
)

// life is one life of a simulated server behind addresses that outlast it.
type life struct {
	c          simjanus.Config
	server     *simjanus.Server
	api, admin atomic.Pointer[http.Handler]
}

func (l *life) restart() {
	if l.server != nil {
		l.server.Close()
	}
	l.server = simjanus.New(l.c)
	api, admin := l.server.API(), l.server.Admin()
	l.api.Store(&api)
	l.admin.Store(&admin)
}

func behind(h *atomic.Pointer[http.Handler]) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*h.Load()).ServeHTTP(w, r) })
}

// TestServer_Backend holds the simulated server to what the suite holds a real one to.
func TestServer_Backend(t *testing.T) {
	key := broker.RoomKey("a room key of some length")
	for name, c := range map[string]simjanus.Config{
		"numbers as ids, admin_key":    {AdminSecret: "s", AdminKey: "k"},
		"strings as ids, no admin_key": {AdminSecret: "s", StringIDs: true},
	} {
		t.Run(name, func(t *testing.T) {
			backendtest.Run(t, func(t *testing.T) *backendtest.Server {
				l := &life{c: c}
				l.restart()
				api, admin := httptest.NewServer(behind(&l.api)), httptest.NewServer(behind(&l.admin))
				t.Cleanup(func() { api.CloseClientConnections(); api.Close(); admin.Close(); l.server.Close() })
				faults := backendtest.NewFaulty(t, admin.URL+"/admin")
				enter := func(t *testing.T, at broker.Target, r broker.RoomSpec, watch bool) func() {
					t.Helper()
					s, err := januscli.Open(t.Context(), api.URL+"/janus", januscli.Options{})
					if err != nil {
						t.Fatal(err)
					}
					id := any(json.RawMessage(r.Epoch.String()))
					if at.StringIDs {
						id = r.Epoch.String()
					}
					pin := key.PIN(at.Pool, r.Room, r.Epoch)
					if watch {
						err = s.Watch(t.Context(), id, pin, 1)
					} else {
						err = s.Join(t.Context(), id, pin)
					}
					if err != nil {
						t.Fatal(err)
					}
					return func() {
						if err := s.Close(t.Context()); err != nil {
							t.Error(err)
						}
					}
				}
				asks := func(request string) func(string, []byte) bool {
					return func(_ string, body []byte) bool {
						return bytes.Contains(body, []byte(`"request":"`+request+`"`))
					}
				}
				return &backendtest.Server{
					Backend: janus.New(janus.Options{AdminSecret: "s", AdminKey: c.AdminKey, Key: key}),
					Target:  broker.Target{Pool: "conference", Instance: "janus-0", Address: faults.Address()},
					Join: func(t *testing.T, at broker.Target, r broker.RoomSpec) func() {
						return enter(t, at, r, false)
					},
					Watch: func(t *testing.T, at broker.Target, r broker.RoomSpec) func() {
						return enter(t, at, r, true)
					},
					Watchable: map[string]any{"dummy_publisher": true},
					Restart:   func(*testing.T) { l.restart() },
					Stop:      func(*testing.T) { admin.CloseClientConnections(); admin.Close(); faults.Close() },
					Faults:    faults,
					Creates:   asks("create"),
					Destroys:  asks("destroy"),
				}
			})
		})
	}
}
