package scaler_test

import (
	"context"
	"fmt"
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

// TestG4_BrokerGone: the stored number is repeated for ServeTTL after the last fetch
// began, then there is none; at no time is there another one.
func TestG4_BrokerGone(t *testing.T) {
	ways := map[string]func(context.Context, string) error{
		"it refuses": func(context.Context, string) error { return errGone },
		"it hangs":   func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() },
		"its store is away": func(context.Context, string) error {
			return &brokerapi.Problem{Code: brokerapi.CodeStoreUnavailable, Title: "the store does not answer", Status: 503}
		},
		"it does not know the pool": func(context.Context, string) error {
			return &brokerapi.Problem{Code: brokerapi.CodePoolNotFound, Title: "no such pool", Status: 404}
		},
	}
	for way, before := range ways {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFakeBroker(ready(row(5, 45)...))
				r := start(t, b)
				r.wants(5)
				settle(1500 * time.Millisecond) // the last good fetch began half a second ago
				b.set(func(b *fakeBroker) {
					b.before = before
					b.facts.Instances = nil
				})
				for at := time.Duration(0); at < 9500*time.Millisecond; at += 500 * time.Millisecond {
					r.wants(5)
					settle(500 * time.Millisecond)
				}
				for range 30 {
					if n, code, text := r.answer(ref()); code != codes.Unavailable || !strings.Contains(text, "stays as it is") {
						t.Fatalf("got %d, %s %q, want UNAVAILABLE", n, code, text)
					}
					settle(time.Second)
				}
				b.set(func(b *fakeBroker) {
					b.before = nil
					b.facts.Instances = row(5, 45)
				})
				settle(6 * time.Second) // a look that hangs ends after 5 s
				r.wants(5)
			})
		})
	}
}

// TestG4_SlowFetch: what a slow fetch brings is as old as its beginning.
func TestG4_SlowFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(ready(row(5, 45)...))
		r := start(t, b)
		r.wants(5)
		slow := true
		b.set(func(b *fakeBroker) {
			b.before = func(_ context.Context, call string) error {
				if !slow || call == "put" {
					return errGone
				}
				slow = false
				time.Sleep(4 * time.Second)
				return nil
			}
		})
		settle(10900 * time.Millisecond) // the slow fetch began after 1 s and ended after 5 s
		r.wants(5)
		settle(200 * time.Millisecond)
		if n, code, text := r.answer(ref()); code != codes.Unavailable {
			t.Errorf("got %d, %s %q, want UNAVAILABLE", n, code, text)
		}
	})
}

func TestG4_Rebuilding(t *testing.T) {
	for _, way := range []string{"phase", "code"} {
		t.Run("the number ends at once, told by "+way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFakeBroker(ready(row(5, 45)...))
				r := start(t, b)
				r.wants(5)
				b.set(func(b *fakeBroker) {
					b.facts.Phase = brokerapi.PhaseRebuilding
					if way == "code" {
						b.before = func(context.Context, string) error {
							return &brokerapi.Problem{Code: brokerapi.CodeRebuilding, Title: "rebuilding", Status: 503}
						}
					}
				})
				settle(time.Second)
				if n, code, text := r.answer(ref()); code != codes.Unavailable || !strings.Contains(text, "rebuil") {
					t.Fatalf("got %d, %s %q", n, code, text)
				}
				// The new term has a floor, and no plan yet.
				b.set(func(b *fakeBroker) {
					b.before = nil
					b.facts.Phase, b.facts.Term, b.facts.Plan, b.facts.Floor = brokerapi.PhaseReady, "t2", nil, 6
				})
				settle(time.Second)
				r.wants(6)
			})
		})
	}
}

// TestG3_OnlyStoredNumbers: a number that could not be stored is not answered.
func TestG3_OnlyStoredNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(ready(append(row(2, 30), vacated(2, time.Hour), vacated(3, time.Hour))...))
		b.set(func(b *fakeBroker) { // the first plan of a term holds all there is
			b.before = func(_ context.Context, call string) error {
				if call == "put" && len(b.stored) > 0 {
					return errGone
				}
				return nil
			}
		})
		r := start(t, b)
		for range 20 {
			r.wants(4)
			settle(time.Second)
		}
		if b.count("put") < 10 {
			t.Fatalf("%d plans were tried, want one in each look", b.count("put"))
		}
		b.set(func(b *fakeBroker) { b.before = nil })
		settle(3 * time.Second) // the first plan only ends the time of which nothing is known
		r.wants(2)
	})
}

// TestG3_MarksBeforePlan: what a plan rests on is done before it, and only then the answer changes.
func TestG3_MarksBeforePlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(ready(row(4, 10)...))
		r := start(t, b)
		r.wants(4)
		settle(3 * time.Second)
		b.mu.Lock()
		defer b.mu.Unlock()
		put, drains := slices.Index(b.calls, "put"), 0
		for _, c := range b.calls[:put] {
			if c == "drain" {
				drains++
			}
		}
		// The first plan of a term counts the time before it as fully loaded.
		if drains != 0 || b.calls[0] != "facts" || b.calls[1] != "put" {
			t.Fatalf("calls %v, want the first plan without marks", b.calls)
		}
		next := slices.Index(b.calls, "drain")
		if next < 0 || b.calls[next-1] != "facts" && b.calls[next-1] != "drain" || !slices.Contains(b.calls[next:], "put") {
			t.Errorf("calls %v, want facts, marks, plan", b.calls)
		}
		if slices.Contains(b.stored, 1) {
			t.Errorf("stored %v before any look after the marks", b.stored)
		}
	})
}

// otherPut is a broker behind something that answers any PUT by itself.
type otherPut struct{ *fakeBroker }

func (otherPut) PutPlan(context.Context, string, int64, brokerapi.PutPlan) (brokerapi.Plan, error) {
	return brokerapi.Plan{}, nil
}

// TestG3_OnlyStoredNumbers_strangeAnswer: an answer that does not tell of the plan that was put stores no number.
func TestG3_OnlyStoredNumbers_strangeAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, otherPut{newFakeBroker(ready(row(3, 40)...))})
		if n, code, text := r.answer(ref()); code != codes.Unavailable {
			t.Errorf("got %d, %s %q: nothing is stored", n, code, text)
		}
	})
}

func TestG3_SealRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(ready(append(row(2, 30), vacated(2, time.Hour), vacated(3, time.Hour))...))
		var refusals int
		b.before = func(_ context.Context, call string) error {
			if call != "put" || len(b.stored) != 1 || refusals > 0 {
				return nil
			}
			refusals++
			return &brokerapi.Problem{Code: brokerapi.CodeSealRefused, Status: 409, Refusals: []brokerapi.SealRefusal{{Instance: "janus-2", Ordinal: 2, Why: "pins", Rooms: 1}}}
		}
		r := start(t, b)
		r.wants(4)
		settle(1500 * time.Millisecond)
		r.wants(3) // it looked again at once, with what the store has refused
		if refusals != 1 {
			t.Errorf("%d refusals, want 1", refusals)
		}
	})
}

// TestG8_TwoPlanners race for each decision: there is one sequence of stored ones, and both repeat its last.
func TestG8_TwoPlanners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(ready(row(5, 45)...))
		b.before = func(_ context.Context, call string) error {
			if call == "put" {
				time.Sleep(100 * time.Millisecond) // both have fetched before either stores
			}
			return nil
		}
		one, two := start(t, b), start(t, b)
		var both sync.WaitGroup
		for _, r := range []*replica{one, two} {
			both.Go(func() { r.wants(5) })
		}
		both.Wait()
		for queued := range 20 {
			b.set(func(b *fakeBroker) { b.facts.Queue.Participants = 60 * queued })
			settle(1500 * time.Millisecond)
			b.mu.Lock()
			last := int64(b.facts.Plan.Desired)
			if b.facts.Plan.Version != int64(len(b.stored)) {
				t.Fatalf("version %d after %d stored plans", b.facts.Plan.Version, len(b.stored))
			}
			b.mu.Unlock()
			one.wants(last)
			two.wants(last)
		}
		if b.refused < 10 {
			t.Errorf("%d plans were refused, want a race in each round", b.refused)
		}
		if !slices.IsSorted(b.stored) || b.stored[len(b.stored)-1] < 25 {
			t.Errorf("stored %v, want a rising row", b.stored)
		}
	})
}

func TestPlanner_SecondScaledObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newFakeBroker(ready(row(5, 45)...)))
		second := ref()
		second.Name = "copy"
		r.wants(5)
		for range 19 {
			_, code, text := r.answer(second)
			if code != codes.FailedPrecondition || !strings.Contains(text, "media/janus already scales pool janus") {
				t.Fatalf("got %s %q, want FAILED_PRECONDITION", code, text)
			}
			settle(15 * time.Second)
		}
		r.wants(5) // the first has been silent for less than 5 min
		settle(5*time.Minute + 2*time.Second)
		r.answer(second)
		settle(2 * time.Second)
		if n, code, text := r.answer(second); n != 5 {
			t.Fatalf("got %d, %s %q, want 5: the first has been silent for long", n, code, text)
		}
		if _, code, _ := r.answer(ref()); code != codes.FailedPrecondition {
			t.Errorf("the first: got %s, want FAILED_PRECONDITION", code)
		}
	})
}

func TestPlanner_Life(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(ready(row(5, 45)...))
		r := start(t, b)
		settle(time.Minute)
		if n := b.count("facts"); n != 0 {
			t.Fatalf("%d looks before any call", n)
		}
		r.wants(5)
		settle(9 * time.Minute)
		if n := b.count("facts"); n < 500 {
			t.Errorf("%d looks in 9 min between two calls, want one a second", n)
		}
		settle(2 * time.Minute)
		n := b.count("facts")
		settle(time.Minute)
		if m := b.count("facts"); m != n {
			t.Errorf("%d looks after 11 min of silence, want none", m-n)
		}
		r.wants(5)
	})
}

// TestG4_OlderFacts: a broker that is behind does not bring back a number that has been replaced.
func TestG4_OlderFacts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(ready(row(5, 45)...))
		r := start(t, b)
		r.wants(5)
		var older *brokerapi.Plan
		b.set(func(b *fakeBroker) { p := *b.facts.Plan; older = &p; b.facts.Queue.Participants = 60 })
		settle(time.Second)
		r.wants(6)
		b.set(func(b *fakeBroker) {
			b.facts.Plan = older
			b.before = func(_ context.Context, call string) error {
				if call == "put" {
					return errGone
				}
				return nil
			}
		})
		settle(2 * time.Second)
		r.wants(6)
	})
}

func TestPlanner_AnotherPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(ready(row(5, 45)...))
		r := start(t, b)
		r.wants(5)
		b.set(func(b *fakeBroker) { b.before = func(context.Context, string) error { return errGone } })
		if n, code, text := r.answer(ref("pool", "other")); code != codes.Unavailable {
			t.Errorf("got %d, %s %q: the number of the pool before", n, code, text)
		}
	})
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, newFakeBroker(ready(row(5, 45)...)))
		r.wants(5)
		r.answer(ref("pool", "?"))
		settle(500 * time.Millisecond)
		families, err := r.metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			for _, m := range f.Metric {
				key := f.GetName()
				for _, l := range m.Label {
					if l.GetName() == "outcome" {
						key += ":" + l.GetValue()
					}
				}
				got[key] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
		for key, want := range map[string]float64{
			"roomscaler_scaler_desired_instances": 5, "roomscaler_scaler_needed_instances": 5, "roomscaler_scaler_cooldown_instances": 5,
			"roomscaler_scaler_floor_instances": 5, "roomscaler_scaler_decision_age_seconds": 0.5,
			"roomscaler_scaler_answers_total:value": 1, "roomscaler_scaler_answers_total:invalid": 1, "roomscaler_scaler_looks_total:stored": 1,
		} {
			if got[key] != want {
				t.Errorf("%s: got %v, want %v (of %v)", key, got[key], want, got)
			}
		}
	})
}

func TestServer_ManyScaledObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(ready())
		b.before = func(context.Context, string) error { return errGone }
		r := start(t, b)
		var code codes.Code
		for i := range 1001 {
			o := ref()
			o.Name = fmt.Sprint("object-", i)
			_, code, _ = r.answer(o)
		}
		if code != codes.ResourceExhausted {
			t.Errorf("the 1001st: got %s, want RESOURCE_EXHAUSTED", code)
		}
	})
}

// The broker's own client is what a scaler runs on.
var _ scaler.Source = (*brokerapi.Client)(nil)
