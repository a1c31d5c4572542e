package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/broker/httpapi"
)

// example is a pool from which the golden messages arise.
func example() (*fakePool, httpapi.URLs) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	ready := broker.Instance{
		Name: "janus-0", Ordinal: 0, Address: "http://10.0.0.1:7088/admin", Incarnation: "n0", Sessions: 12, Participants: 10, Rooms: 3,
		LookBegin: 199_300, EmptySince: broker.Never, Pins: 3, Reserved: 4, OldestPin: 140_000, FirstSeen: 100_000, ListedAt: 200_000,
	}
	suspect := broker.Instance{
		Name: "janus-1", Ordinal: 1, Address: "http://10.0.0.2:7088/admin", Incarnation: "n1",
		LookBegin: 169_000, EmptySince: 180_000, OldestPin: broker.Never, FirstSeen: 100_000, ListedAt: 190_000,
		Fault: broker.FaultTimeout, FaultSince: 170_000, Advice: "look at the server",
		Marks: []broker.Mark{
			{Owner: broker.OwnerBroker, Reason: "timeout", Since: 170_000},
			{Owner: broker.OwnerHook, Reason: "pod ends", Since: 195_000, Grace: time.Minute},
		},
	}
	starting := broker.Instance{
		Name: "janus-2", Ordinal: 2, Address: "http://10.0.0.3:7088/admin", LookBegin: broker.Never, EmptySince: broker.Never,
		OldestPin: broker.Never, FirstSeen: 198_000, ListedAt: 200_000,
	}
	p := broker.Placed{
		Pin: broker.Pin{Room: "täglich/1", Instance: "janus-1", Incarnation: "n1", Epoch: 1772600767000001, State: broker.Live,
			Labels: map[string]string{"team": "a"}, Created: 100_000, LastSeen: 190_000, CreatedAt: at},
		Instance: suspect, JoinPIN: "p-1", Now: 200_000,
	}
	plan := broker.Plan{Version: 7, Desired: 3, Target: 20, EmptyWhen: "sessions", StoredAt: 198_500, Body: []byte(`{"rule":"hold"}`)}
	return &fakePool{
		fresh: true, placed: p, rooms: []broker.Placed{p}, plan: plan, swept: true, ended: make([]broker.Pin, 2),
		facts: broker.Facts{
			StoreState: broker.StoreState{Term: "t1", Phase: broker.Ready, Now: 200_000, Gap: 110_000, Floor: 2},
			Instances:  []broker.Instance{ready, suspect, starting}, Plan: plan, Demand: broker.Demand{Rooms: 1, Participants: 4},
		},
	}, httpapi.URLs{WS: "wss://{instance}.example.org/", HTTP: "https://{address-host}/janus"}
}

func golden(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "brokerapi", "testdata", "v1", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestHandler_AnswersTheGoldenMessages(t *testing.T) {
	const base = "/v1/pools/video"
	cases := map[string]struct {
		line, ask, header string
		status            int
		golden, etag      string
		asked             string // the pool's last call
	}{
		"create": {"PUT " + base + "/rooms/t%C3%A4glich%2F1", "create_room.json", "", 201, "pin.json", `"1772600767000001"`,
			`create "täglich/1" 4 map[publishers:6] map[team:a]`},
		"create without a body": {"PUT " + base + "/rooms/r", "", "", 201, "pin.json", `"1772600767000001"`, `create "r" 0 map[] map[]`},
		"lookup":                {"GET " + base + "/rooms/t%C3%A4glich%2F1", "", "", 200, "pin.json", `"1772600767000001"`, `lookup "täglich/1" true`},
		"a page of rooms that is full has a cursor": {"GET " + base + "/rooms?limit=1&instance=janus-1&cursor=YQ", "", "", 200, "rooms.json", "",
			`rooms "janus-1" "a" 1`},
		"delete":              {"DELETE " + base + "/rooms/r", "", "", 204, "", "", `delete "r" 0`},
		"delete of an epoch":  {"DELETE " + base + "/rooms/r", "", `If-Match: "9"`, 204, "", "", `delete "r" 9`},
		"instances":           {"GET " + base + "/instances", "", "", 200, "instances.json", "", "facts"},
		"instance":            {"GET " + base + "/instances/janus-1", "", "", 200, "instance.json", "", `instance "janus-1"`},
		"facts":               {"GET " + base, "", "", 200, "pool.json", "", "facts"},
		"lost":                {"POST " + base + "/instances/janus-1/lost", "lost_request.json", "", 200, "lost.json", "", `lost "janus-1" "n1"`},
		"lost without a body": {"POST " + base + "/instances/janus-1/lost", "", "", 200, "lost.json", "", `lost "janus-1" ""`},
		"uncordon":            {"DELETE " + base + "/instances/janus-1/drain?owner=hook", "", "", 200, "instance.json", "", `instance "janus-1"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, urls := example()
			h := httpapi.New(map[string]httpapi.Served{"video": {Pool: f, URLs: urls}}, httpapi.Options{})
			body := ""
			if tc.ask != "" {
				body = string(golden(t, tc.ask))
			}
			var headers []string
			if tc.header != "" {
				headers = append(headers, tc.header)
			}
			w := do(h, tc.line, body, headers...)
			if w.Code != tc.status || w.Header().Get("ETag") != tc.etag || w.Header().Get("Cache-Control") != "no-store" {
				t.Fatalf("got %d, %v: %s", w.Code, w.Header(), w.Body)
			}
			if tc.golden == "" {
				if w.Body.Len() != 0 {
					t.Errorf("got body %s", w.Body)
				}
			} else if diff := cmp.Diff(compact(t, golden(t, tc.golden)), compact(t, w.Body.Bytes())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := f.asked[len(f.asked)-1]; got != tc.asked {
				t.Errorf("the pool was asked %s, want %s", got, tc.asked)
			}
		})
	}
	t.Run("drain", func(t *testing.T) {
		f, _ := example()
		f.facts.Instances[0].Marks = []broker.Mark{{Owner: broker.OwnerHook, Since: 195_000, Grace: time.Minute}}
		for _, line := range []string{"POST " + base + "/instances/janus-0/drain", "GET " + base + "/instances/janus-0/drain?owner=hook&wait=2h"} {
			body := ""
			if strings.HasPrefix(line, "POST") {
				body = string(golden(t, "drain_request.json"))
			}
			w := do(handler(f, httpapi.Options{}), line, body)
			if diff := cmp.Diff(compact(t, golden(t, "drain.json")), compact(t, w.Body.Bytes())); diff != "" {
				t.Errorf("%s (-want +got):\n%s", line, diff)
			}
		}
		want := []string{`drain "janus-0" hook "pod ends" 1h30m0s`, `status "janus-0" hook 1m0s`}
		if diff := cmp.Diff(want, f.asked); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	t.Run("plan", func(t *testing.T) {
		f, _ := example()
		w := do(handler(f, httpapi.Options{}), "PUT "+base+"/plan", string(golden(t, "put_plan.json")), `If-Match: "6"`)
		want := strings.Replace(compact(t, golden(t, "plan.json")), `"age_ms":1500`, `"age_ms":0`, 1)
		if diff := cmp.Diff(want, compact(t, w.Body.Bytes())); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if len(f.asked) != 1 || !strings.HasPrefix(f.asked[0], "plan t1 {IfVersion:6 Desired:1 Target:20 EmptyWhen:sessions") ||
			!strings.HasSuffix(f.asked[0], "Seal:[{Instance:janus-1 Incarnation:n1 Occupied:false} {Instance:janus-2 Incarnation: Occupied:false} {Instance:janus-3 Incarnation:n3 Occupied:true}] Unseal:[janus-0] GuardFor:10s}") {
			t.Errorf("the pool was asked %s", f.asked)
		}
	})
	t.Run("an instance that wants string ids has the room's id as a string", func(t *testing.T) {
		f, _ := example()
		f.placed.Instance.StringIDs = true
		w := do(handler(f, httpapi.Options{}), "GET "+base+"/rooms/r", "")
		if !strings.Contains(w.Body.String(), `"janus_room":"1772600767000001"`) || strings.Contains(w.Body.String(), "urls") {
			t.Errorf("got %s", w.Body)
		}
	})
	t.Run("an instance that no finder has listed is unlisted since it became known", func(t *testing.T) {
		f, _ := example()
		f.facts.Instances[0].ListedAt = broker.Never
		w := do(handler(f, httpapi.Options{}), "GET "+base+"/instances/janus-0", "")
		if !strings.Contains(w.Body.String(), `"known_ms":100000,"unlisted_ms":100000`) {
			t.Errorf("got %s", w.Body)
		}
	})
	t.Run("a room that was there is 200", func(t *testing.T) {
		f, _ := example()
		f.fresh = false
		if w := do(handler(f, httpapi.Options{}), "PUT "+base+"/rooms/r", ""); w.Code != 200 {
			t.Errorf("got %d", w.Code)
		}
	})
}

func compact(t *testing.T, b []byte) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, b); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return out.String()
}

func TestHandler_RoomNamesSurviveThePath(t *testing.T) {
	f, _ := example()
	s := httptest.NewServer(handler(f, httpapi.Options{}))
	defer s.Close()
	c, err := brokerapi.NewClient(s.URL, nil, s.Client())
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range []string{"a", "a/b", "/", "//", "a//b", "/a/", ".", "..", "...", "../x", "a/../b", "%", "%2F", "100%", "a b", " ", "+", "a+b",
		"?", "a?b=c", "#", ";", "日本", "é", "\"", "\\", ":", "plan", "{room}", strings.Repeat("ü", 128)} {
		p, err := c.Lookup(t.Context(), "video", room, true)
		if err != nil || p.Room != room {
			t.Errorf("%q came back as %q, %v", room, p.Room, err)
		}
	}
}

func TestHandler_Errors(t *testing.T) {
	secret := "redis://:hunter2@10.0.0.9"
	cases := map[string]struct {
		err    error
		status int
		code   string
		retry  string
		detail string // part of it
	}{
		"room":       {broker.ErrRoomNotFound, 404, brokerapi.CodeRoomNotFound, "", ""},
		"instance":   {broker.ErrInstanceNotFound, 404, brokerapi.CodeInstanceNotFound, "", ""},
		"mark":       {broker.ErrMarkNotFound, 404, brokerapi.CodeMarkNotFound, "", ""},
		"queue":      {broker.ErrQueueFull, 503, brokerapi.CodeQueueFull, "10", ""},
		"capacity":   {broker.ErrNoCapacity, 503, brokerapi.CodeNoCapacity, "5", ""},
		"never fits": {broker.ErrNeverFits, 422, brokerapi.CodeNeverFits, "", ""},
		"settings":   {broker.ErrSettingsDiffer, 409, brokerapi.CodeSettingsDiffer, "", ""},
		"stale":      {broker.ErrStale, 412, brokerapi.CodeStale, "", ""},
		"released":   {broker.ErrReleased, 409, brokerapi.CodeReleased, "", ""},
		"version":    {broker.ErrVersion, 412, brokerapi.CodePlanVersion, "", ""},
		"rebuilding": {broker.ErrRebuilding, 503, brokerapi.CodeRebuilding, "2", ""},
		"store lost": {broker.ErrStoreLost, 503, brokerapi.CodeRebuilding, "2", ""},
		"term":       {broker.ErrTerm, 503, brokerapi.CodeRebuilding, "1", ""},
		"store away": {broker.ErrStoreUnavailable, 503, brokerapi.CodeStoreUnavailable, "2", ""},
		"uncertain":  {&broker.FaultError{Fault: broker.FaultTimeout, Advice: "look at it", Err: broker.ErrUncertain}, 504, brokerapi.CodeInstanceUnreachable, "2", "look at it"},
		"refused":    {&broker.FaultError{Fault: broker.FaultUnauthorized, Advice: "give the secret", Err: broker.ErrRefused}, 502, brokerapi.CodeInstanceRefused, "5", "give the secret"},
		"deadline":   {context.DeadlineExceeded, 503, brokerapi.CodeTimeout, "1", ""},
		"invalid":    {&broker.InvalidError{Field: "janus.secret", Want: "is set by the broker; leave it out"}, 400, brokerapi.CodeInvalid, "", "leave it out"},
		"unknown":    {errors.New("boom"), 500, brokerapi.CodeInternal, "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, _ := example()
			f.err = fmt.Errorf("asking %s: %w", secret, tc.err)
			w := do(handler(f, httpapi.Options{}), "PUT /v1/pools/video/rooms/r", "")
			var p brokerapi.Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
				t.Fatal(err)
			}
			if w.Code != tc.status || p.Status != tc.status || p.Code != tc.code || w.Header().Get("Retry-After") != tc.retry ||
				w.Header().Get("Content-Type") != "application/problem+json" || !strings.Contains(p.Detail, tc.detail) {
				t.Errorf("got %d, %v: %s", w.Code, w.Header(), w.Body)
			}
			if strings.Contains(w.Body.String(), "hunter2") {
				t.Errorf("tells a secret: %s", w.Body)
			}
		})
	}
	t.Run("a refused seal comes with the refusals", func(t *testing.T) {
		f, _ := example()
		f.err = &broker.SealError{Refusals: []broker.SealRefusal{{Instance: "janus-1", Ordinal: 1, Why: "pins", Pins: 2}}}
		w := do(handler(f, httpapi.Options{}), "PUT /v1/pools/video/plan", `{"term":"t"}`, `If-Match: "0"`)
		if diff := cmp.Diff(compact(t, golden(t, "problem_seal.json")), compact(t, w.Body.Bytes())); diff != "" || w.Code != 409 {
			t.Errorf("%d (-want +got):\n%s", w.Code, diff)
		}
	})
	t.Run("delete of a room that is not there is success", func(t *testing.T) {
		f, _ := example()
		f.err = broker.ErrRoomNotFound
		if w := do(handler(f, httpapi.Options{}), "DELETE /v1/pools/video/rooms/r", ""); w.Code != 204 {
			t.Errorf("got %d: %s", w.Code, w.Body)
		}
	})
	t.Run("a panic is an internal error and the next request is served", func(t *testing.T) {
		f, _ := example()
		f.hold = func(context.Context, time.Duration) { panic("hunter2") }
		h := handler(f, httpapi.Options{})
		if w := do(h, "GET /v1/pools/video", ""); w.Code != 500 || strings.Contains(w.Body.String(), "hunter2") {
			t.Errorf("got %d: %s", w.Code, w.Body)
		}
		if w := do(h, "GET /livez", ""); w.Code != 200 {
			t.Errorf("got %d", w.Code)
		}
	})
	t.Run("a request has a time limit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f, _ := example()
			f.hold = func(ctx context.Context, _ time.Duration) { <-ctx.Done() }
			h := handler(f, httpapi.Options{Timeout: 3 * time.Second})
			for line, want := range map[string]time.Duration{
				"GET /v1/pools/video": 3 * time.Second,
				"GET /v1/pools/video/instances/janus-0/drain?owner=hook&wait=20s": 23 * time.Second,
			} {
				begin := time.Now()
				w := do(h, line, "")
				if took := time.Since(begin); w.Code != 503 || !strings.Contains(w.Body.String(), `"code":"timeout"`) || took != want {
					t.Errorf("%s: after %v got %d: %s", line, took, w.Code, w.Body)
				}
			}
		})
	})
}

func TestHandler_Stop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := example()
		f.hold = func(ctx context.Context, wait time.Duration) {
			if wait != 20*time.Second {
				t.Errorf("held for %v", wait)
			}
			<-ctx.Done()
		}
		h := handler(f, httpapi.Options{})
		done := make(chan *httptest.ResponseRecorder)
		go func() { done <- do(h, "PUT /v1/pools/video/rooms/r?wait=20s", "") }()
		synctest.Wait()
		begin := time.Now()
		h.Stop()
		w := <-done
		if w.Code != 503 || !strings.Contains(w.Body.String(), brokerapi.CodeNoCapacity) || w.Header().Get("Retry-After") == "" || time.Since(begin) != 0 {
			t.Errorf("a waiting create, after %v: %d %v: %s", time.Since(begin), w.Code, w.Header(), w.Body)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f, _ := example()
		f.hold = func(ctx context.Context, wait time.Duration) {
			if wait != 30*time.Second {
				t.Errorf("held for %v", wait)
			}
			<-ctx.Done()
		}
		h := handler(f, httpapi.Options{})
		begin := time.Now()
		done := make(chan *httptest.ResponseRecorder)
		go func() { done <- do(h, "GET /v1/pools/video/instances/janus-0/drain?owner=hook&wait=30s", "") }()
		synctest.Wait()
		h.Stop()
		w := <-done
		if w.Code != 200 || !strings.Contains(w.Body.String(), `"result":"waiting"`) || time.Since(begin) != 0 {
			t.Errorf("after %v got %d: %s", time.Since(begin), w.Code, w.Body)
		}
		if w := do(h, "GET /readyz", ""); w.Code != 503 {
			t.Errorf("readyz: got %d", w.Code)
		}
		if w := do(h, "GET /livez", ""); w.Code != 200 {
			t.Errorf("livez: got %d", w.Code)
		}
		h.Stop()
	})
}

func TestHandler_Health(t *testing.T) {
	f, _ := example()
	f.swept = false
	h := handler(f, httpapi.Options{})
	if w := do(h, "GET /livez", ""); w.Code != 200 {
		t.Errorf("livez: got %d", w.Code)
	}
	if w := do(h, "GET /readyz", ""); w.Code != 503 || !strings.Contains(w.Body.String(), "pool video") || w.Header().Get("Retry-After") == "" {
		t.Errorf("before the first sweep: got %d: %s", w.Code, w.Body)
	}
	f.swept = true
	if w := do(h, "GET /readyz", ""); w.Code != 200 {
		t.Errorf("after it: got %d", w.Code)
	}
}

func TestHandler_ObservesRoutesNotNames(t *testing.T) {
	f, _ := example()
	var got []string
	h := handler(f, httpapi.Options{
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("m")) }),
		Observe: func(route, method string, status int, _ time.Duration) {
			got = append(got, fmt.Sprint(method, " ", route, " ", status))
		},
	})
	for _, line := range []string{"PUT /v1/pools/video/rooms/r", "GET /nowhere", "POST /livez", "GET /metrics", "HEAD /livez"} {
		do(h, line, "")
	}
	want := []string{"PUT " + brokerapi.PathRoom + " 201", "GET  404", "POST  405", "GET /metrics 200", "HEAD /livez 200"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
