package janus_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/backendtest"
	"github.com/roomscaler/roomscaler/broker/janus"
	"github.com/roomscaler/roomscaler/test/januscli"
	"github.com/roomscaler/roomscaler/test/procs"
)

func TestBackend_Look_Advice(t *testing.T) {
	t.Run("the well-known default secret is warned about", func(t *testing.T) {
		s := start(t, procs.JanusOptions{AdminSecret: janus.DefaultSecret}, "")
		if got := s.look(t, false).Advice; !strings.Contains(got, "set another admin_secret in janus.jcfg") || strings.Contains(got, janus.DefaultSecret) {
			t.Errorf("advice %q", got)
		}
	})
	t.Run("a key here and none at the videoroom is warned about, and the rooms are public", func(t *testing.T) {
		s := start(t, procs.JanusOptions{}, adminKey)
		s.create(t, spec("r", 1000))
		l := s.look(t, false)
		if !strings.Contains(l.Advice, "set admin_key in janus.plugin.videoroom.jcfg") {
			t.Errorf("advice %q", l.Advice)
		}
		if len(l.Rooms) != 1 || !l.Complete {
			t.Errorf("rooms %v, complete %v", l.Rooms, l.Complete)
		}
	})
	t.Run("all in order is not warned about", func(t *testing.T) {
		if got := start(t, procs.JanusOptions{AdminKey: adminKey}, adminKey).look(t, true).Advice; got != "" {
			t.Errorf("advice %q", got)
		}
	})
}

func TestBackend_Look_Cost(t *testing.T) {
	s := start(t, procs.JanusOptions{AdminKey: adminKey}, adminKey)
	if _, err := s.Plant(t.Context(), s.target, "life"); err != nil {
		t.Fatal(err)
	}
	s.look(t, false)
	before := len(s.faults.Requests())
	s.look(t, false)
	if got := len(s.faults.Requests()) - before; got != 2 {
		t.Errorf("a look at a known life took %d requests, want 2", got)
	}
}

// A key that goes in the moment in which a room is made leaves a private room that nobody can list.
func TestBackend_Look_KeyGone(t *testing.T) {
	s := start(t, procs.JanusOptions{AdminKey: adminKey}, adminKey)
	if l := s.look(t, false); !l.Complete {
		t.Fatal("the look at the server with a key is not complete")
	}
	s.restart(t, func(o *procs.JanusOptions) { o.AdminKey = "" })
	r := spec("r", 1000)
	s.client(t) // takes the end of the old connection
	eventually(t, "the new life answers", func() bool { _, err := s.Sessions(t.Context(), s.target.Address); return err == nil })
	s.create(t, r)
	l := s.look(t, false)
	if len(l.Rooms) != 0 || l.Complete {
		t.Errorf("rooms %v, complete %v; want none and not complete", l.Rooms, l.Complete)
	}
	if o, err := s.Inspect(t.Context(), s.target, broker.RoomRef{Room: "r", Epoch: 1000}); err != nil || !o.Exists {
		t.Errorf("asked for by its id it is %+v, %v", o, err)
	}
	s.restart(t, func(o *procs.JanusOptions) { o.AdminKey = adminKey })
	eventually(t, "the third life answers", func() bool { _, err := s.Sessions(t.Context(), s.target.Address); return err == nil })
	if l := s.look(t, false); !l.Complete {
		t.Error("the life after it, with a key, is not complete")
	}
}

func TestBackend_Look_Ids(t *testing.T) {
	s := start(t, procs.JanusOptions{}, "")
	c := s.client(t)
	for _, id := range []string{"9007199254740993", "9223372036854775807"} {
		if _, err := c.Ask(t.Context(), map[string]any{"request": "create", "room": json.RawMessage(id)}); err != nil {
			t.Fatal(err)
		}
	}
	if l := s.look(t, false); l.OtherRooms != 2 || l.StringIDs {
		t.Errorf("%d others, string ids %v", l.OtherRooms, l.StringIDs)
	}
	t.Run("a server that wants other ids than the look said refuses with advice", func(t *testing.T) {
		at := s.target
		at.StringIDs = true
		err := s.Create(t.Context(), at, spec("r", 5))
		if f := faultOf(t, err); !errors.Is(err, broker.ErrRefused) || !strings.Contains(f.Advice, "string_ids") {
			t.Errorf("got %v with advice %q", err, f.Advice)
		}
	})
}

func TestBackend_Look_UnreadableHandles(t *testing.T) {
	s := start(t, procs.JanusOptions{}, "")
	r := spec("r", 1000)
	s.create(t, r)
	join(t, s.client(t), s.target, r)
	handleInfo := func(_ string, body []byte) bool { return strings.Contains(string(body), `"handle_info"`) }
	defer s.faults.Cause(backendtest.Trouble{Match: handleInfo, Do: backendtest.Garbage}).Stop()
	l := s.look(t, true)
	if l.Sessions != 1 || l.Handles != broker.Unknown || l.Rooms[0].Viewers != broker.Unknown || l.Advice == "" {
		t.Errorf("sessions %d, handles %d, viewers %d, advice %q; unknown is never zero", l.Sessions, l.Handles, l.Rooms[0].Viewers, l.Advice)
	}
	if o, err := s.Inspect(t.Context(), s.target, broker.RoomRef{Room: "r", Epoch: 1000}); err != nil || o.Viewers != broker.Unknown {
		t.Errorf("inspect said %+v, %v", o, err)
	}
	if err := s.Destroy(t.Context(), s.target, broker.RoomRef{Room: "r", Epoch: 1000}, broker.DestroyOptions{OnlyVacant: true}); err == nil {
		t.Error("a room whose viewers are unknown was destroyed as vacant")
	}
}

// A client that went silent is a session and a participant until the server's own timeout.
func TestBackend_Look_Ghost(t *testing.T) {
	s := start(t, procs.JanusOptions{SessionTimeout: 2}, "")
	r := spec("r", 1000)
	s.create(t, r)
	join(t, s.client(t), s.target, r)
	l := s.look(t, false)
	if l.SessionTimeout != 2*time.Second || l.Sessions != 1 || l.Rooms[0].Publishers != 1 {
		t.Errorf("timeout %v, sessions %d, publishers %d", l.SessionTimeout, l.Sessions, l.Rooms[0].Publishers)
	}
	eventually(t, "the ghost goes and the room stays", func() bool {
		l := s.look(t, false)
		return l.Sessions == 0 && len(l.Rooms) == 1 && l.Rooms[0].Publishers == 0 && l.Rooms[0].Viewers == 0
	})
}

func TestBackend_Destroy_SessionInTwoRooms(t *testing.T) {
	s := start(t, procs.JanusOptions{}, "")
	a, b := spec("a", 1000), spec("b", 1001)
	a.Settings = map[string]any{"dummy_publisher": true}
	s.create(t, a)
	s.create(t, b)
	c := s.client(t)
	s.watch(t, c, s.target, a)
	second, err := c.Attach(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	join(t, second, s.target, b)
	if err := s.Destroy(t.Context(), s.target, broker.RoomRef{Room: "a", Epoch: 1000}, broker.DestroyOptions{}); err != nil {
		t.Fatal(err)
	}
	if l := s.look(t, true); l.Sessions != 1 || l.Handles != 1 || l.Rooms[0].Publishers != 1 {
		t.Errorf("%+v: want the handle in the room that is gone ended, and the one in the other room untouched", l)
	}
}

func TestPlainClient(t *testing.T) {
	for _, c := range []struct{ name, key string }{{"public rooms", ""}, {"private rooms", adminKey}} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, procs.JanusOptions{AdminKey: c.key}, c.key)
			r := spec("r", 1000)
			s.create(t, r)
			if _, err := s.Plant(t.Context(), s.target, "life"); err != nil {
				t.Fatal(err)
			}
			client := s.client(t)
			listed, err := client.Ask(t.Context(), map[string]any{"request": "list"})
			if err != nil {
				t.Fatal(err)
			}
			if want := map[string]int{"": 2, adminKey: 1}[c.key]; len(listed["list"].([]any)) != want {
				t.Errorf("a client sees %v; want %d", listed, want)
			}
			marker := listed["list"].([]any)[0].(map[string]any)["room"]
			for _, room := range []any{1000, marker} {
				for request, more := range map[string]map[string]any{"destroy": nil, "edit": {"new_description": "mine"}, "kick": {"id": 1}} {
					for _, secret := range []string{"", "guess"} {
						ask := map[string]any{"request": request, "room": room}
						for k, v := range more {
							ask[k] = v
						}
						if secret != "" {
							ask["secret"] = secret
						}
						_, err := client.Ask(t.Context(), ask)
						wantCode(t, err, 429, 433)
					}
				}
				wantCode(t, client.Join(t.Context(), room, ""), 429, 433)
				wantCode(t, client.Join(t.Context(), room, "guess"), 433)
			}
			if l := s.look(t, false); len(l.Rooms) != 1 || l.Marker == nil {
				t.Errorf("%+v", l)
			}
		})
	}
	t.Run("a copied description makes no room of ours", func(t *testing.T) {
		s := start(t, procs.JanusOptions{}, "")
		description := roomKey.Describe(broker.RoomMark{Pool: "conference", Room: "r", Epoch: 1000})
		client := s.client(t)
		for _, forged := range []map[string]any{
			{"request": "create", "room": 1234, "description": description},
			{"request": "create", "room": 1000, "description": description},
			{"request": "create", "room": 1001, "description": "x", "secret": "theirs"},
		} {
			if _, err := client.Ask(t.Context(), forged); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range []broker.RoomSpec{spec("r", 1000), spec("other", 1001)} {
			if err := s.Create(t.Context(), s.target, r); !errors.Is(err, broker.ErrRefused) {
				t.Errorf("create of a room whose id a client took: %v, want it to wrap ErrRefused", err)
			}
		}
		if l := s.look(t, false); l.OtherRooms != 2 {
			t.Errorf("%d others; want that with another id and that with another description", l.OtherRooms)
		}
	})
	t.Run("a marker that a client made is refused", func(t *testing.T) {
		s := start(t, procs.JanusOptions{}, "")
		client := s.client(t)
		if _, err := client.Ask(t.Context(), map[string]any{"request": "create", "room": json.RawMessage("9007199254740991"), "description": "mine"}); err != nil {
			t.Fatal(err)
		}
		if l := s.look(t, false); l.Marker != nil || l.OtherRooms != 1 {
			t.Errorf("marker %v, %d others", l.Marker, l.OtherRooms)
		}
		_, err := s.Plant(t.Context(), s.target, "life")
		if f := faultOf(t, err); !errors.Is(err, broker.ErrRefused) || !strings.Contains(f.Advice, "same room key") {
			t.Errorf("got %v with advice %q", err, f.Advice)
		}
	})
}

func wantCode(t *testing.T, err error, codes ...int) {
	t.Helper()
	var e *januscli.Error
	if !errors.As(err, &e) {
		t.Errorf("got %v, want a refusal", err)
		return
	}
	for _, c := range codes {
		if e.Code == c {
			return
		}
	}
	t.Errorf("got %v, want one of %v", err, codes)
}

func TestClient_SetAccepting(t *testing.T) {
	s := start(t, procs.JanusOptions{}, "")
	s.client(t)
	if err := s.SetAccepting(t.Context(), s.target.Address, false); err != nil {
		t.Fatal(err)
	}
	_, err := januscli.Open(t.Context(), s.process.HTTPURL(), januscli.Options{})
	wantCode(t, err, 472)
	if err := s.SetAccepting(t.Context(), s.target.Address, true); err != nil {
		t.Fatal(err)
	}
	s.client(t)
	if n, err := s.Sessions(t.Context(), s.target.Address); n != 2 || err != nil {
		t.Errorf("%d sessions, %v; want 2", n, err)
	}
}
