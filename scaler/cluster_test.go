package scaler_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/scaler"
)

// fakeCluster is a Cluster that says what a test has set.
type fakeCluster struct {
	mu      sync.Mutex
	view    scaler.Workload
	err     error
	live    *int // nil: as the view
	liveErr error
	gone    map[scaler.Ref]bool
	lives   int
	events  []scaler.Event
}

func newFakeCluster(r int) *fakeCluster {
	return &fakeCluster{view: *workload(r, nil), gone: map[scaler.Ref]bool{}}
}

func (c *fakeCluster) set(edit func(c *fakeCluster)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	edit(c)
}

func (c *fakeCluster) View(scaler.Ref) (scaler.Workload, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.view
	w.Pods = slices.Clone(w.Pods)
	return w, c.err
}

func (c *fakeCluster) Live(_ context.Context, ref scaler.Ref) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lives++
	switch {
	case c.gone[ref]:
		return 0, scaler.ErrNoScaledObject
	case c.liveErr != nil:
		return 0, c.liveErr
	case c.live != nil:
		return *c.live, nil
	}
	return c.view.Replicas, nil
}

func (c *fakeCluster) Event(_ scaler.Ref, e scaler.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, e)
}

// reasons returns the reasons of the Events so far, and forgets them.
func (c *fakeCluster) reasons() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, e := range c.events {
		all = append(all, e.Reason)
	}
	c.events = nil
	return all
}

func TestG4_ClusterUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newFakeBroker(ready(row(5, 45)...)), newFakeCluster(5)
		r := startOn(t, b, c)
		r.wants(5)
		c.set(func(c *fakeCluster) { c.err = errors.New("watch pods in media: forbidden") })
		settle(time.Second)
		puts := b.count("put")
		for range 20 {
			if n, code, text := r.answer(ref()); code != codes.Unavailable || !strings.Contains(text, "pods in media: forbidden") {
				t.Fatalf("got %d, %s %q, want UNAVAILABLE with the reason", n, code, text)
			}
			settle(time.Second)
		}
		if n := b.count("put"); n != puts {
			t.Errorf("%d plans were stored meanwhile", n-puts)
		}
		c.set(func(c *fakeCluster) { c.err = nil })
		settle(time.Second)
		r.wants(5)
	})
}

// TestServer_FirstAnswerOnKubernetes: the first answer waits for the first lists, and not for much longer than that.
func TestServer_FirstAnswerOnKubernetes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newFakeBroker(ready(row(5, 45)...)), newFakeCluster(5)
		c.err = errors.New("not listed yet")
		time.AfterFunc(300*time.Millisecond, func() { c.set(func(c *fakeCluster) { c.err = nil }) })
		startOn(t, b, c).wants(5)
	})
	synctest.Test(t, func(t *testing.T) {
		b, c := newFakeBroker(ready(row(5, 45)...)), newFakeCluster(5)
		c.err = errors.New("not listed yet")
		before := time.Now()
		_, code, text := startOn(t, b, c).answer(ref())
		if code != codes.Unavailable || !strings.Contains(text, "not listed yet") || time.Since(before) > time.Second {
			t.Errorf("got %s %q after %s", code, text, time.Since(before))
		}
	})
}

func TestServer_RefusedWorkload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFakeCluster(5)
		c.err = &scaler.RefusedError{Ref: object, Why: "it scales Deployment janus"}
		r := startOn(t, newFakeBroker(ready(row(5, 45)...)), c)
		if _, code, text := r.answer(ref()); code != codes.FailedPrecondition || !strings.Contains(text, "ScaledObject media/janus cannot be scaled: it scales Deployment janus") {
			t.Errorf("got %s %q, want FAILED_PRECONDITION with the reason", code, text)
		}
	})
}

// TestG4_LiveBeforeLower: a lower number is stored only when the API server itself has told spec.replicas.
func TestG4_LiveBeforeLower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newFakeBroker(ready(append(row(3, 45), vacated(3, time.Hour))...)), newFakeCluster(4)
		c.liveErr = errors.New("away")
		r := startOn(t, b, c)
		r.wants(4)
		for range 10 {
			settle(time.Second)
			r.wants(4)
		}
		if c.lives < 5 {
			t.Fatalf("the API server was asked %d times", c.lives)
		}
		if got := c.reasons(); !slices.Contains(got, "LiveUnreadable") {
			t.Errorf("events %v do not tell", got)
		}
		c.set(func(c *fakeCluster) { c.liveErr = nil })
		settle(2 * time.Second)
		r.wants(3)
		asked := c.lives
		settle(10 * time.Second)
		if c.lives != asked {
			t.Errorf("it was asked %d times although nothing is lowered", c.lives-asked)
		}
	})
}

func TestServer_ToleranceHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newFakeBroker(ready(row(20, 45)...)), newFakeCluster(20)
		c.view.HPA.ScaleUp, c.view.HPA.ScaleIn = 0.1, 0.1
		r := startOn(t, b, c)
		if n, code, text := r.answer(ref()); code != codes.Unavailable || !strings.Contains(text, "hold at 20 replicas") {
			t.Fatalf("got %d, %s %q, want UNAVAILABLE that says hold", n, code, text)
		}
		if got := r.metric("roomscaler_scaler_tolerance_mode:band"); got != 1 {
			t.Errorf("mode band: got %v", got)
		}
		if got := r.metric("roomscaler_scaler_answers_total:hold"); got != 1 {
			t.Errorf("answers: got %v", got)
		}
		if got := r.metric("roomscaler_scaler_risk:tolerance"); got != 1 {
			t.Errorf("risk: got %v", got)
		}
		b.set(func(b *fakeBroker) { b.facts.Queue.Participants = 120 })
		settle(time.Second)
		r.wants(23) // 21 would do
		c.set(func(c *fakeCluster) { c.view.HPA.ScaleUp, c.view.HPA.ScaleIn = 0, 0 })
		settle(time.Second)
		r.wants(23)
		if got := r.metric("roomscaler_scaler_tolerance_mode:exact"); got != 1 {
			t.Errorf("mode exact: got %v", got)
		}
	})
}

// TestG7_EventsOnChange: an Event tells of a number or a risk when it changes, by one replica alone.
func TestG7_EventsOnChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newFakeBroker(ready(row(5, 45)...)), newFakeCluster(5)
		one, two := startOn(t, b, c), startOn(t, b, c)
		one.wants(5)
		two.wants(5)
		settle(time.Minute)
		c.reasons()
		c.set(func(c *fakeCluster) { c.view.Settings = []scaler.Risk{{Code: scaler.RiskFallback, Detail: "fallback"}} })
		settle(time.Minute)
		if got := c.reasons(); !slices.Equal(got, []string{"Fallback"}) {
			t.Errorf("a new risk: events %v, want one", got)
		}
		b.set(func(b *fakeBroker) { b.facts.Queue.Participants = 60 })
		settle(time.Minute)
		if got := c.reasons(); !slices.Equal(got, []string{"InstancesDecided"}) {
			t.Errorf("a new number: events %v, want one", got)
		}
		c.set(func(c *fakeCluster) { c.view.Replicas = 9; c.view.Pods = pods(upTo(9)...) })
		settle(time.Minute)
		if got := c.reasons(); !slices.Contains(got, "ChangedPast") || len(got) > 4 {
			t.Errorf("scaled by hand: events %v", got)
		}
	})
}

// TestPlanner_OwnerGone: a pool changes hands at once when its ScaledObject is known to be gone.
func TestPlanner_OwnerGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newFakeBroker(ready(row(5, 45)...)), newFakeCluster(5)
		r := startOn(t, b, c)
		r.wants(5)
		second := ref()
		second.Name = "copy"
		for range 3 {
			if _, code, _ := r.answer(second); code != codes.FailedPrecondition {
				t.Fatalf("got %s, want FAILED_PRECONDITION", code)
			}
			settle(15 * time.Second)
		}
		c.set(func(c *fakeCluster) { c.gone[object] = true })
		settle(12 * time.Second)
		if n, code, text := r.answer(second); n != 5 {
			t.Errorf("got %d, %s %q, want 5", n, code, text)
		}
	})
}

// TestServer_WakeFromZero: at 0 replicas KEDA hears that the pool is active when somebody waits, and again while nothing runs:
// its own write of 0 may come late.
func TestServer_WakeFromZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newFakeBroker(ready()), newFakeCluster(0)
		c.view.Minimum = 0
		r := startOn(t, b, c)
		zero := ref()
		r.answer(zero)
		s := &stream{ctx: t.Context(), sent: make(chan bool, 100)}
		go r.keda.StreamIsActive(zero, s) //nolint:errcheck // it ends with the test
		settle(time.Minute)
		if len(s.sent) != 0 {
			t.Fatalf("%d messages at 0, want none", len(s.sent))
		}
		b.set(func(b *fakeBroker) {
			b.facts.Queue = brokerapi.Queue{Rooms: 1, Participants: 2}
			b.before = func(_ context.Context, call string) error {
				if call == "put" {
					return errGone // no number can be stored
				}
				return nil
			}
		})
		settle(time.Second)
		if len(s.sent) != 1 {
			t.Fatalf("%d messages when somebody waits, want one", len(s.sent))
		}
		b.set(func(b *fakeBroker) { b.before = nil })
		settle(20 * time.Second)
		if n := len(s.sent); n < 4 || n > 6 {
			t.Errorf("%d messages in 20 s of nothing running, want one each 5 s", n)
		}
		c.set(func(c *fakeCluster) { c.view.Replicas = 1 })
		settle(time.Second)
		n := len(s.sent)
		settle(time.Minute)
		if len(s.sent) != n {
			t.Errorf("%d messages although one runs", len(s.sent)-n)
		}
		c.set(func(c *fakeCluster) { c.view.Replicas = 0 }) // KEDA's write of 0 comes late
		settle(7 * time.Second)
		if len(s.sent) == n {
			t.Error("no message although nothing runs again")
		}
		if n, _, _ := r.answer(zero); n != 1 {
			t.Errorf("got %d, want 1: a late write of 0 changes no number", n)
		}
	})
}

// TestG3_StartMoved: while the stored number counts from another first ordinal, there is none.
func TestG3_StartMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newFakeBroker(ready(row(5, 45)...)), newFakeCluster(5)
		r := startOn(t, b, c)
		r.wants(5)
		b.set(func(b *fakeBroker) {
			b.before = func(_ context.Context, call string) error {
				if call == "put" {
					return errGone
				}
				return nil
			}
		})
		c.set(func(c *fakeCluster) { c.view.Start = 2 })
		settle(time.Second)
		if n, code, text := r.answer(ref()); code != codes.Unavailable || !strings.Contains(text, "first ordinal") {
			t.Fatalf("got %d, %s %q, want UNAVAILABLE", n, code, text)
		}
		b.set(func(b *fakeBroker) { b.before = nil })
		settle(2 * time.Second)
		if r.wants(5); b.facts.Plan.Desired != 7 {
			t.Errorf("the plan has %d, want 7: the broker's ordinals count from 0", b.facts.Plan.Desired)
		}
	})
}
