package janus_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/janus"
)

// replayer answers each request with the next of some recorded replies, for the transaction that was asked.
type replayer struct {
	mu      sync.Mutex
	replies []string
	asked   int
}

func (r *replayer) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	var asked struct {
		Transaction string `json:"transaction"`
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked++; r.asked > 200 {
		return nil, errors.New("enough")
	}
	reply := strings.ReplaceAll(r.replies[r.asked%len(r.replies)], `"transaction":"t1"`, `"transaction":"`+asked.Transaction+`"`)
	status := http.StatusOK
	if reply == "" {
		status = http.StatusNotFound
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(reply)), Request: req}, nil
}

// FuzzReply lets a server say anything: every call must return, and every failure must be a fault that says
// whether the call had an effect and holds no secret.
func FuzzReply(f *testing.F) {
	recorded, err := os.ReadFile("testdata/replies.jsonl") // of Janus 1.1.2
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(recorded) {
		f.Add(string(bytes.TrimSpace(line)))
	}
	f.Add(string(recorded))
	ours, err := json.Marshal(roomKey.Describe(broker.RoomMark{Pool: "p", Room: "r", Epoch: 5}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(`{"janus":"success","transaction":"t1","sessions":[]}` + "\n" +
		`{"janus":"success","transaction":"t1","response":{"videoroom":"success","list":[{"room":5,"description":` + string(ours) + `,"num_participants":1}]}}`)
	f.Fuzz(func(t *testing.T, lines string) {
		b := janus.New(janus.Options{AdminSecret: adminSecret, AdminKey: adminKey, Key: roomKey, HTTP: &http.Client{
			Transport: &replayer{replies: strings.Split(lines, "\n")},
		}})
		at := broker.Target{Pool: "p", Instance: "janus-0", Address: "http://janus.invalid/admin"}
		ctx := t.Context()
		look, err := b.Look(ctx, at, broker.LookOptions{Viewers: true})
		checkFault(t, err)
		if look.Sessions < 0 || look.Handles < broker.Unknown || look.OtherPeople < 0 || look.SessionTimeout < 0 {
			t.Errorf("look %+v", look)
		}
		for _, r := range look.Rooms {
			if r.Pool != at.Pool || r.Publishers < 0 || r.Viewers < broker.Unknown {
				t.Errorf("room %+v", r)
			}
		}
		n, err := b.Plant(ctx, at, "life")
		checkFault(t, err)
		if err == nil && n == "" {
			t.Error("a plant without an incarnation is no success")
		}
		checkFault(t, b.Create(ctx, at, spec("r", 5)))
		checkFault(t, b.Destroy(ctx, at, broker.RoomRef{Room: "r", Epoch: 5}, broker.DestroyOptions{}))
		checkFault(t, b.Destroy(ctx, at, broker.RoomRef{Room: "r", Epoch: 5}, broker.DestroyOptions{OnlyVacant: true}))
		_, err = b.Inspect(ctx, at, broker.RoomRef{Room: "r", Epoch: 5})
		checkFault(t, err)
		_, err = b.Sessions(ctx, at.Address)
		checkFault(t, err)
		checkFault(t, b.SetAccepting(ctx, at.Address, false))
	})
}

func checkFault(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	f := faultOf(t, err)
	if errors.Is(err, broker.ErrRefused) == errors.Is(err, broker.ErrUncertain) {
		t.Errorf("%v wraps not exactly one of ErrRefused and ErrUncertain", err)
	}
	for _, secret := range []string{adminSecret, adminKey, roomKey.Secret("p", "r", 5), roomKey.PIN("p", "r", 5)} {
		if strings.Contains(err.Error()+f.Advice, secret) {
			t.Errorf("a secret is in %q", err)
		}
	}
}
