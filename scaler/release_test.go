package scaler_test

import (
	"testing"
	"time"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/scaler"
)

// TestG5_UncordonBeforeStart: as long as marked instances can hold the load, none is started.
func TestG5_UncordonBeforeStart(t *testing.T) {
	tg := target(t, "spareSessions", "0")
	in := append(row(8, 50), marked(instance(8, 0), "scaler", time.Minute, nil), marked(instance(9, 0), "scaler", time.Minute, nil))
	for queued, want := range map[int]struct{ desired, uncordoned int }{0: {10, 0}, 50: {10, 1}, 100: {10, 2}, 101: {11, 2}} {
		f := facts(t, 10, record(t, tg, 10), tg, in...)
		f.Queue.Participants = queued
		d := decide(f, tg)
		if d.Desired != want.desired || len(d.Uncordon) != want.uncordoned {
			t.Errorf("queued %d: got %d and uncordons %v, want %d and %d", queued, d.Desired, d.Uncordon, want.desired, want.uncordoned)
		}
	}
	t.Run("no other owner's mark is removed", func(t *testing.T) {
		in := append(row(8, 50), marked(marked(instance(8, 0), "scaler", time.Minute, nil), "operator", time.Minute, nil), marked(instance(9, 0), "hook", time.Minute, nil))
		f := facts(t, 10, record(t, tg, 10), tg, in...)
		f.Queue.Participants = 20
		d := decide(f, tg)
		if d.Desired != 11 || len(d.Uncordon) != 1 || d.Uncordon[0] != "janus-8" {
			t.Errorf("got %d and uncordons %v, want 11, for neither is capacity, and janus-8 of the scaler's own", d.Desired, d.Uncordon)
		}
	})
}

// TestG5_ReleaseEndsLate follows one release from the lower number through the higher
// one to its end: 10 s in which the lower may still be answered, and the guard of 90 s.
func TestG5_ReleaseEndsLate(t *testing.T) {
	tg := target(t, "spareSessions", "0")
	f := facts(t, 10, record(t, tg, 10), tg, append(row(9, 45), vacated(9, 2*time.Minute))...)
	lower := decide(f, tg)
	if lower.Desired != 9 || len(lower.Put.Seal) != 1 {
		t.Fatalf("got %s, want 9 with a seal", lower.Why)
	}
	f = later(apply(f, lower), 2*time.Second)
	f.Queue.Participants = 80
	higher := decide(f, tg)
	if higher.Desired != 11 {
		t.Fatalf("got %s, want 11: the released one is no capacity", higher.Why)
	}
	if higher.Put.GuardMS != 100_000 {
		t.Errorf("guard: got %d ms, want 100000, for a lower number was just stored", higher.Put.GuardMS)
	}
	f = apply(f, higher)
	f.Plan.AgeMS = -1000 // it was stored a second after the facts were fetched
	f = later(f, time.Second)
	f.Instances = append(f.Instances, instance(10, 20))
	f.Queue.Participants = 0
	for elapsed := time.Duration(0); elapsed < 101*time.Second; elapsed += 2 * time.Second {
		d := decide(f, tg)
		if len(d.Uncordon) > 0 {
			t.Fatalf("%s after the higher number: uncordons %v", elapsed, d.Uncordon)
		}
		if got, want := len(d.Put.Unseal) > 0, elapsed > 100*time.Second; got != want {
			t.Fatalf("%s after the higher number: unseals %v", elapsed, d.Put.Unseal)
		}
		if elapsed == 100*time.Second {
			break
		}
		f = later(apply(f, d), 2*time.Second)
	}
	f = later(f, time.Millisecond)
	d := decide(f, tg)
	if len(d.Put.Unseal) != 1 || d.Put.Unseal[0] != "janus-9" {
		t.Fatalf("100.001 s after the higher number: unseals %v, want janus-9", d.Put.Unseal)
	}
	f = apply(f, d)
	f.Queue.Participants = 60
	if d = decide(f, tg); len(d.Uncordon) != 1 {
		t.Errorf("then: uncordons %v, want janus-9", d.Uncordon)
	}
}

func TestG5_GuardOfARise(t *testing.T) {
	tg := target(t, "spareSessions", "0")
	for _, c := range []struct {
		name    string
		lowered int64
		want    int64
	}{
		{"a rise long after the last lower number", now - 100_000, 10_000},
		{"a rise soon after a lower number", now - 99_999, 100_000},
		{"a rise when there was no lower number", -1, 10_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec := record(t, tg, 4)
			rec.Lowered = c.lowered
			f := facts(t, 4, rec, tg, row(4, 50)...)
			f.Queue.Participants = 30
			if d := decide(f, tg); d.Desired != 5 || d.Put.GuardMS != c.want {
				t.Errorf("got %d with guard %d ms, want 5 with %d", d.Desired, d.Put.GuardMS, c.want)
			}
		})
	}
}

// TestG5_NewTermKeepsReleases: nobody knows what was answered before, so what is released stays so.
func TestG5_NewTermKeepsReleases(t *testing.T) {
	tg := target(t)
	f := facts(t, 0, record(t, tg, 0), tg, append(row(9, 50), released(vacated(9, time.Hour)), released(vacated(10, time.Hour)))...)
	f.Plan, f.Floor = nil, 9
	d := decide(f, tg)
	if d.Desired != 12 || len(d.Put.Unseal) > 0 {
		t.Fatalf("got %d, unseals %v: want 12, beyond the released ones, and none", d.Desired, d.Put.Unseal)
	}
	f = apply(f, d)
	for range 50 {
		f = later(f, 2*time.Second)
		d = decide(f, tg)
		if len(d.Put.Unseal) > 0 {
			t.Fatalf("%d s later: unseals %v", (f.NowMS-now)/1000, d.Put.Unseal)
		}
		f = apply(f, d)
	}
	if d = decide(later(f, 2*time.Second), tg); len(d.Put.Unseal) != 2 {
		t.Errorf("102 s later: unseals %v, want both", d.Put.Unseal)
	}
}

func TestDecide_Metric(t *testing.T) {
	in := []brokerapi.Instance{{
		Name: "janus-0", Incarnation: "a", State: "ready", AgeMS: ptr(int64(0)),
		Sessions: ptr(10), Participants: ptr(7), Rooms: ptr(3), RoomsLeft: 4, Reserved: 5, Marks: []brokerapi.Mark{},
	}}
	for metric, want := range map[string]struct{ load, queued, target int }{
		"sessions": {15, 9, 50}, "participants": {12, 9, 50}, "rooms": {4, 2, 0},
	} {
		tg := target(t, "sessionMetric", metric)
		f := facts(t, 1, record(t, tg, 1), tg, in...)
		f.Queue = brokerapi.Queue{Rooms: 2, Participants: 9}
		d := decide(f, tg)
		if d.Why.Load != want.load || d.Why.Queued != want.queued || d.Put.Target != want.target {
			t.Errorf("%s: got load %d, queued %d, target %d; want %+v", metric, d.Why.Load, d.Why.Queued, d.Put.Target, want)
		}
	}
}

func TestDecide_Spare(t *testing.T) {
	for spare, want := range map[[2]string]int{
		{"spareSessions", "7"}: 7, {"spareSessions", "10%"}: 31, {"spareInstances", "2"}: 100, {"spareInstances", "50%"}: 200,
	} {
		tg := target(t, "spareSessions", "0")
		m := tg.Metadata()
		delete(m, "spareSessions")
		m[spare[0]] = spare[1]
		tg, err := scaler.ParseTarget(m)
		if err != nil {
			t.Fatal(err)
		}
		f := facts(t, 10, record(t, tg, 10), tg, row(10, 30)...)
		f.Queue.Participants = 1 // 301 fill seven instances
		if got := decide(f, tg).Why.Spare; got != want {
			t.Errorf("%v: got %d, want %d", spare, got, want)
		}
	}
}
