package brokerapi_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

var update = flag.Bool("update", false, "write golden messages that are missing; those of a release are never changed")

func of[T any](v T) *T { return &v }

// messages are the golden ones: whoever speaks the contract, in any version, must
// read and write them so.
func messages() map[string]any {
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	pin := brokerapi.Pin{
		Room: "täglich/1", Instance: "janus-1", Incarnation: "n1", Epoch: 1772600767000001, State: "live",
		Address: "http://10.0.0.2:7088/admin", URLs: &brokerapi.URLs{WS: "wss://janus-1.example.org/", HTTP: "https://10.0.0.2/janus"},
		JanusRoom: json.RawMessage("1772600767000001"), PIN: "p-1", CreatedAt: at, LastSeen: at.Add(90 * time.Second),
		Labels: map[string]string{"team": "a"},
	}
	ready := brokerapi.Instance{
		Name: "janus-0", Ordinal: 0, Address: "http://10.0.0.1:7088/admin", Incarnation: "n0", State: "ready",
		Sessions: of(12), Participants: of(10), Rooms: of(3), AgeMS: of(int64(700)), Reserved: 4, RoomsLeft: 3,
		OldestRoomMS: of(int64(60_000)), KnownMS: 100_000, UnlistedMS: 0, Marks: []brokerapi.Mark{},
	}
	suspect := brokerapi.Instance{
		Name: "janus-1", Ordinal: 1, Address: "http://10.0.0.2:7088/admin", Incarnation: "n1", State: "suspect",
		Sessions: of(0), Participants: of(0), Rooms: of(0), AgeMS: of(int64(31_000)), EmptyMS: of(int64(20_000)), KnownMS: 100_000, UnlistedMS: 10_000,
		FailingMS: of(int64(30_000)), Reason: "timeout", Advice: "look at the server",
		Marks: []brokerapi.Mark{
			{Owner: "broker", Reason: "timeout", AgeMS: 30_000},
			{Owner: "hook", Reason: "pod ends", AgeMS: 5_000, RemainingMS: of(int64(55_000))},
		},
	}
	starting := brokerapi.Instance{Name: "janus-2", Ordinal: 2, Address: "http://10.0.0.3:7088/admin", State: "starting", KnownMS: 2_000,
		Marks: []brokerapi.Mark{}}
	plan := brokerapi.Plan{Version: 7, Desired: 3, Target: 20, EmptyWhen: "sessions", AgeMS: 1_500, Body: json.RawMessage(`{"rule":"hold"}`)}
	return map[string]any{
		"create_room.json":   brokerapi.CreateRoom{ExpectedParticipants: 4, Janus: map[string]any{"publishers": 6.0}, Labels: map[string]string{"team": "a"}},
		"pin.json":           pin,
		"rooms.json":         brokerapi.Rooms{Rooms: []brokerapi.Pin{pin}, Cursor: "dMOkZ2xpY2gvMQ"},
		"instance.json":      suspect,
		"instances.json":     brokerapi.Instances{Instances: []brokerapi.Instance{ready, suspect, starting}},
		"drain_request.json": brokerapi.DrainRequest{Owner: "hook", Reason: "pod ends", Grace: "1h30m"},
		"drain.json": brokerapi.Drain{Result: brokerapi.DrainWaiting, Instance: "janus-0", Owner: "hook", RoomsLeft: 3, Sessions: of(12),
			RemainingMS: of(int64(55_000)), OldestRoomMS: of(int64(60_000)), AgeMS: of(int64(700))},
		"lost_request.json": brokerapi.LostRequest{Incarnation: "n1"},
		"lost.json":         brokerapi.Lost{Instance: "janus-1", RoomsEnded: 2},
		"pool.json": brokerapi.PoolFacts{Pool: "video", Term: "t1", Phase: brokerapi.PhaseReady, NowMS: 200_000, GapMS: of(int64(90_000)), Floor: 2,
			Instances: []brokerapi.Instance{ready, suspect, starting}, Queue: brokerapi.Queue{Rooms: 1, Participants: 4}, Plan: &plan, EmptyWhen: "sessions"},
		"plan.json": plan,
		"put_plan.json": brokerapi.PutPlan{Term: "t1", Desired: 1, Target: 20, EmptyWhen: "sessions", Body: json.RawMessage(`{"rule":"in"}`),
			Seal:   []brokerapi.Seal{{Instance: "janus-1", Incarnation: "n1"}, {Instance: "janus-2"}, {Instance: "janus-3", Incarnation: "n3", Occupied: true}},
			Unseal: []string{"janus-0"}, GuardMS: 10_000},
		"problem.json": brokerapi.Problem{Type: "urn:roomscaler:problem:invalid", Title: "The request is not valid", Status: 400, Code: brokerapi.CodeInvalid,
			Detail: "limit: give 1 to 1000", Field: "limit"},
		"problem_seal.json": brokerapi.Problem{Type: "urn:roomscaler:problem:seal_refused", Title: "An instance that the plan takes away may not go", Status: 409,
			Code: brokerapi.CodeSealRefused, Detail: "look at the refusals, fetch the pool's facts and decide again",
			Refusals: []brokerapi.SealRefusal{{Instance: "janus-1", Ordinal: 1, Why: "pins", Rooms: 2}}},
	}
}

func TestGolden(t *testing.T) {
	for name, want := range messages() {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", "v1", name)
			b, err := os.ReadFile(path)
			if os.IsNotExist(err) && *update {
				b = indented(t, want)
				err = os.WriteFile(path, b, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(indented(t, want)), string(b)); diff != "" {
				t.Errorf("written otherwise (-now +golden):\n%s", diff)
			}
			got := reflect.New(reflect.TypeOf(want))
			dec := json.NewDecoder(bytes.NewReader(b))
			dec.DisallowUnknownFields()
			if err := dec.Decode(got.Interface()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(indented(t, want)), string(indented(t, got.Elem().Interface()))); diff != "" {
				t.Errorf("read otherwise (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("each golden file is a message that is tested", func(t *testing.T) {
		files, err := os.ReadDir(filepath.Join("testdata", "v1"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if _, ok := messages()[f.Name()]; !ok {
				t.Errorf("%s is in no test", f.Name())
			}
		}
	})
}

func indented(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}
