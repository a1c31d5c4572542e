package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/httpapi"
)

// fakePool answers as it is told and remembers what it was asked.
type fakePool struct {
	err    error
	fresh  bool
	placed broker.Placed
	rooms  []broker.Placed
	facts  broker.Facts
	plan   broker.Plan
	ended  []broker.Pin
	swept  bool
	hold   func(ctx context.Context, wait time.Duration) // of what waits
	asked  []string
}

func (f *fakePool) ask(format string, v ...any) error {
	f.asked = append(f.asked, fmt.Sprintf(format, v...))
	return f.err
}

func (f *fakePool) CreateRoomWithin(ctx context.Context, r broker.CreateRequest, wait time.Duration) (broker.Placed, bool, error) {
	if f.hold != nil && wait > 0 {
		f.hold(ctx, wait)
		return broker.Placed{}, false, ctx.Err()
	}
	err := f.ask("create %q %d %v %v", r.Room, r.Expected, r.Settings, r.Labels)
	return f.placed, f.fresh, err
}

func (f *fakePool) Lookup(_ context.Context, room string, touch bool) (broker.Placed, error) {
	err := f.ask("lookup %q %v", room, touch)
	p := f.placed
	p.Pin.Room = room
	return p, err
}

func (f *fakePool) DeleteRoom(_ context.Context, room string, e broker.Epoch) error {
	return f.ask("delete %q %d", room, e)
}

func (f *fakePool) Rooms(_ context.Context, instance, after string, limit int) ([]broker.Placed, error) {
	err := f.ask("rooms %q %q %d", instance, after, limit)
	return f.rooms, err
}

func (f *fakePool) Facts(ctx context.Context) (broker.Facts, error) {
	if f.hold != nil {
		f.hold(ctx, 0)
		return broker.Facts{}, ctx.Err()
	}
	return f.facts, f.ask("facts")
}

func (f *fakePool) Instance(_ context.Context, name string) (broker.Instance, broker.PoolTime, error) {
	err := f.ask("instance %q", name)
	for _, in := range f.facts.Instances {
		if in.Name == name {
			return in, f.facts.Now, err
		}
	}
	return broker.Instance{}, 0, broker.ErrInstanceNotFound
}

func (f *fakePool) Drain(_ context.Context, instance string, m broker.MarkRequest) (broker.DrainStatus, error) {
	err := f.ask("drain %q %s %q %v", instance, m.Owner, m.Reason, m.Grace)
	return f.status(m.Owner), err
}

func (f *fakePool) DrainStatus(ctx context.Context, instance string, owner broker.Owner, wait time.Duration) (broker.DrainStatus, error) {
	err := f.ask("status %q %s %v", instance, owner, wait)
	if f.hold != nil && wait > 0 {
		f.hold(ctx, wait)
		return broker.DrainStatus{}, ctx.Err()
	}
	return f.status(owner), err
}

func (f *fakePool) status(o broker.Owner) broker.DrainStatus {
	s := broker.DrainStatus{Result: broker.DrainWaiting, Owner: o, Now: f.facts.Now}
	if len(f.facts.Instances) > 0 {
		s.Instance = f.facts.Instances[0]
	}
	return s
}

func (f *fakePool) Uncordon(_ context.Context, instance string, owner broker.Owner) (broker.Instance, error) {
	return broker.Instance{}, f.ask("uncordon %q %s", instance, owner)
}

func (f *fakePool) Lost(_ context.Context, instance, incarnation string) ([]broker.Pin, error) {
	return f.ended, f.ask("lost %q %q", instance, incarnation)
}

func (f *fakePool) PutPlan(_ context.Context, term broker.Term, u broker.PlanUpdate) (broker.Plan, error) {
	return f.plan, f.ask("plan %s %+v", term, u)
}

func (f *fakePool) Swept() bool { return f.swept }

func (f *fakePool) EmptyWhen(broker.Facts) broker.EmptyWhen { return broker.EmptySessions }

func handler(f *fakePool, o httpapi.Options) *httpapi.Handler {
	return httpapi.New(map[string]httpapi.Served{"video": {Pool: f}}, o)
}

// do makes a request of a line such as "PUT /path" and headers such as "If-Match: 1".
func do(h http.Handler, line, body string, headers ...string) *httptest.ResponseRecorder {
	method, target, _ := strings.Cut(line, " ")
	var b io.Reader
	if body != "" {
		b = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, target, b)
	for _, h := range headers {
		k, v, _ := strings.Cut(h, ": ")
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func tokenFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
