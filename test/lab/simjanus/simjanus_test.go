package simjanus_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/test/januscli"
	"github.com/roomscaler/roomscaler/test/lab/simjanus"
)

type server struct {
	*simjanus.Server
	api, admin *httptest.Server
}

func start(t *testing.T, c simjanus.Config) server {
	t.Helper()
	c.AdminSecret = "s"
	s := simjanus.New(c)
	sv := server{s, httptest.NewServer(s.API()), httptest.NewServer(s.Admin())}
	t.Cleanup(func() { sv.api.Close(); sv.admin.Close(); s.Close() })
	return sv
}

func (s server) ask(t *testing.T, path string, body map[string]any) map[string]any {
	t.Helper()
	if _, set := body["admin_secret"]; !set {
		body["admin_secret"] = "s"
	}
	body["transaction"] = "t1"
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.admin.URL+"/admin"+path, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.admin.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	delete(got, "transaction")
	return got
}

func (s server) videoroom(t *testing.T, request map[string]any) map[string]any {
	t.Helper()
	got := s.ask(t, "", map[string]any{"janus": "message_plugin", "plugin": "janus.plugin.videoroom", "request": request})
	r, _ := got["response"].(map[string]any)
	return r
}

type obj = map[string]any

func same(t *testing.T, got, want map[string]any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestServer_Admin(t *testing.T) {
	s := start(t, simjanus.Config{Name: "a"})
	t.Run("a wrong secret is an error within a 200, but not for ping", func(t *testing.T) {
		same(t, s.ask(t, "", obj{"janus": "list_sessions", "admin_secret": "x"}),
			obj{"janus": "error", "error": obj{"code": 403., "reason": "Unauthorized request (wrong or missing secret/token)"}})
		same(t, s.ask(t, "", obj{"janus": "ping", "admin_secret": "x"}), obj{"janus": "pong"})
	})
	t.Run("a failure of the plugin is a success of the core", func(t *testing.T) {
		same(t, s.ask(t, "", obj{"janus": "message_plugin", "plugin": "janus.plugin.videoroom", "request": obj{"request": "destroy", "room": 99}}),
			obj{"janus": "success", "response": obj{"videoroom": "event", "error_code": 426., "error": "No such room (99)"}})
	})
	t.Run("a room with a secret is destroyed only with it", func(t *testing.T) {
		same(t, s.videoroom(t, obj{"request": "create", "room": 1, "secret": "s3"}), obj{"videoroom": "created", "room": 1., "permanent": false})
		same(t, s.videoroom(t, obj{"request": "create", "room": 1}), obj{"videoroom": "event", "error_code": 427., "error": "Room 1 already exists"})
		same(t, s.videoroom(t, obj{"request": "destroy", "room": 1}), obj{"videoroom": "event", "error_code": 429., "error": "Missing mandatory element (secret)"})
		same(t, s.videoroom(t, obj{"request": "destroy", "room": 1, "secret": "x"}), obj{"videoroom": "event", "error_code": 433., "error": "Unauthorized (wrong secret)"})
		same(t, s.videoroom(t, obj{"request": "destroy", "room": 1, "secret": "s3"}), obj{"videoroom": "destroyed", "room": 1., "permanent": false})
		same(t, s.videoroom(t, obj{"request": "exists", "room": 1}), obj{"videoroom": "success", "room": 1., "exists": false})
	})
	t.Run("an empty body closes the connection without an answer", func(t *testing.T) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.admin.URL+"/admin", nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := s.admin.Client().Do(req); !errors.Is(err, io.EOF) {
			if resp != nil {
				resp.Body.Close()
			}
			t.Errorf("got %v, want EOF", err)
		}
	})
	t.Run("private rooms are listed to whoever has the admin key", func(t *testing.T) {
		s := start(t, simjanus.Config{AdminKey: "k"})
		same(t, s.videoroom(t, obj{"request": "create", "room": 1}), obj{"videoroom": "event", "error_code": 429., "error": "Missing mandatory element (admin_key)"})
		s.videoroom(t, obj{"request": "create", "room": 1, "is_private": true, "admin_key": "k"})
		if got := s.videoroom(t, obj{"request": "list"})["list"].([]any); len(got) != 0 {
			t.Errorf("without the key: got %v", got)
		}
		if got := s.videoroom(t, obj{"request": "list", "admin_key": "k"})["list"].([]any); len(got) != 1 {
			t.Errorf("with the key: got %v", got)
		}
	})
	t.Run("ids are numbers or strings as configured", func(t *testing.T) {
		same(t, s.videoroom(t, obj{"request": "create", "room": "a"}), obj{"videoroom": "event", "error_code": 430., "error": "Invalid element type (room should be a positive integer)"})
		s := start(t, simjanus.Config{StringIDs: true})
		same(t, s.videoroom(t, obj{"request": "create", "room": 1}), obj{"videoroom": "event", "error_code": 430., "error": "Invalid element type (room should be a string)"})
		same(t, s.videoroom(t, obj{"request": "create", "room": "a b"}), obj{"videoroom": "created", "room": "a b", "permanent": false})
	})
}

func TestServer_Session(t *testing.T) {
	s := start(t, simjanus.Config{})
	ctx := t.Context()
	s.videoroom(t, obj{"request": "create", "room": 7, "pin": "p"})
	open := func(t *testing.T) *januscli.Session {
		t.Helper()
		c, err := januscli.Open(ctx, s.api.URL+"/janus", januscli.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	code := func(t *testing.T, err error, want int) {
		t.Helper()
		var refused *januscli.Error
		if !errors.As(err, &refused) || refused.Code != want {
			t.Errorf("got %v, want code %d", err, want)
		}
	}
	people := func(t *testing.T) int {
		t.Helper()
		return len(s.videoroom(t, obj{"request": "listparticipants", "room": 7})["participants"].([]any))
	}
	t.Run("one who joins is counted until it leaves", func(t *testing.T) {
		c := open(t)
		if err := c.Join(ctx, 7, "p"); err != nil {
			t.Fatal(err)
		}
		if got := people(t); got != 1 {
			t.Errorf("%d participants, want 1", got)
		}
		if err := c.Leave(ctx); err != nil {
			t.Fatal(err)
		}
		if got := people(t); got != 0 {
			t.Errorf("%d participants after leaving, want 0", got)
		}
		if err := c.Close(ctx); err != nil {
			t.Fatal(err)
		}
		code(t, c.KeepAlive(ctx), 458)
	})
	t.Run("a wrong pin is refused", func(t *testing.T) { code(t, open(t).Join(ctx, 7, "x"), 433) })
	t.Run("the end of a session ends its place in the room", func(t *testing.T) {
		c := open(t)
		if err := c.Join(ctx, 7, "p"); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(ctx); err != nil {
			t.Fatal(err)
		}
		if got := people(t); got != 0 {
			t.Errorf("%d participants, want 0", got)
		}
	})
	t.Run("a viewer's handle outlives the room", func(t *testing.T) {
		s.videoroom(t, obj{"request": "create", "room": 8})
		p, v := open(t), open(t)
		if err := p.Join(ctx, 8, ""); err != nil {
			t.Fatal(err)
		}
		if err := v.Watch(ctx, 8, "", 1); err != nil {
			t.Fatal(err)
		}
		s.videoroom(t, obj{"request": "destroy", "room": 8})
		path := "/" + json.Number(jsonText(t, v.ID())).String()
		h := s.ask(t, path, obj{"janus": "list_handles"})["handles"].([]any)[0]
		info := s.ask(t, path+"/"+jsonText(t, uint64(h.(float64))), obj{"janus": "handle_info", "plugin_only": true})
		got := info["info"].(map[string]any)["plugin_specific"].(map[string]any)
		if got["type"] != "subscriber" || got["room"] != 8. {
			t.Errorf("got %v", got)
		}
	})
	t.Run("no session is made while none is accepted", func(t *testing.T) {
		s.ask(t, "", obj{"janus": "accept_new_sessions", "accept": false})
		_, err := januscli.Open(ctx, s.api.URL+"/janus", januscli.Options{})
		code(t, err, 472)
		s.ask(t, "", obj{"janus": "accept_new_sessions", "accept": true})
		open(t)
	})
}

func jsonText(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestServer_SessionTimeout(t *testing.T) {
	t.Run("a silent session ends two looks after its timeout", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := simjanus.New(simjanus.Config{SessionTimeout: 10 * time.Second})
			defer s.Close()
			post := func(body string) string {
				w := httptest.NewRecorder()
				s.API().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/janus/5", bytes.NewBufferString(body)))
				return w.Body.String()
			}
			w := httptest.NewRecorder()
			s.API().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/janus", bytes.NewBufferString(`{"janus":"create","transaction":"t","id":5}`)))
			const alive = `{"janus":"ack","session_id":5,"transaction":"t"}`
			for range 3 {
				time.Sleep(9 * time.Second)
				if got := post(`{"janus":"keepalive","transaction":"t"}`); got != alive {
					t.Fatalf("got %s", got)
				}
			}
			time.Sleep(15 * time.Second)
			if got := post(`{"janus":"keepalive","transaction":"t"}`); got == alive {
				t.Error("the session is still there")
			}
		})
	})
}
