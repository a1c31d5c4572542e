package januscli_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/roomscaler/roomscaler/test/januscli"
	"github.com/roomscaler/roomscaler/test/procs"
)

func TestSession(t *testing.T) {
	j, err := procs.StartJanus(t.Context(), procs.JanusOptions{APISecret: "api"})
	procs.Need(t, err)
	defer j.Kill()
	ctx := t.Context()
	open := func(t *testing.T) *januscli.Session {
		t.Helper()
		s, err := januscli.Open(ctx, j.HTTPURL(), januscli.Options{APISecret: "api"})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	owner := open(t)
	if _, err := owner.Ask(ctx, map[string]any{"request": "create", "room": 7, "pin": "p", "dummy_publisher": true}); err != nil {
		t.Fatal(err)
	}
	people := func(t *testing.T) []map[string]any {
		t.Helper()
		r, err := owner.Ask(ctx, map[string]any{"request": "listparticipants", "room": 7})
		if err != nil {
			t.Fatal(err)
		}
		var got []map[string]any
		for _, p := range r["participants"].([]any) {
			got = append(got, p.(map[string]any))
		}
		return got
	}

	t.Run("one who joins is a participant until it leaves", func(t *testing.T) {
		s := open(t)
		if err := s.Join(ctx, json.RawMessage("7"), "p"); err != nil {
			t.Fatal(err)
		}
		if got := len(people(t)); got != 2 {
			t.Errorf("%d participants with the dummy, want 2", got)
		}
		if err := s.KeepAlive(ctx); err != nil {
			t.Error(err)
		}
		if err := s.Leave(ctx); err != nil {
			t.Fatal(err)
		}
		if got := len(people(t)); got != 1 {
			t.Errorf("%d participants with the dummy after it left, want 1", got)
		}
	})
	t.Run("a wrong pin is a refusal", func(t *testing.T) {
		var refused *januscli.Error
		if err := open(t).Join(ctx, 7, "wrong"); !errors.As(err, &refused) || refused.Code != 433 {
			t.Errorf("got %v, want code 433", err)
		}
	})
	t.Run("a closed session is gone", func(t *testing.T) {
		s := open(t)
		if err := s.Close(ctx); err != nil {
			t.Fatal(err)
		}
		var refused *januscli.Error
		if err := s.KeepAlive(ctx); !errors.As(err, &refused) || refused.Code != 458 {
			t.Errorf("got %v, want code 458", err)
		}
	})
}
