package adapter_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/scaler"
	"github.com/roomscaler/roomscaler/scaler/adapter"
)

func ptr[T any](v T) *T { return &v }

// instances are healthy, each with so many sessions and half as many rooms.
func instances(sessions ...int) []brokerapi.Instance {
	var out []brokerapi.Instance
	for i, n := range sessions {
		out = append(out, brokerapi.Instance{
			Name: fmt.Sprintf("janus-%d", i), Ordinal: i, Incarnation: fmt.Sprintf("life-%d", i), State: "ready",
			Sessions: ptr(n), Participants: ptr(n), Rooms: ptr(n / 2), RoomsLeft: n / 2, AgeMS: ptr(int64(1000)), KnownMS: 3_600_000,
		})
	}
	return out
}

func newBroker(sessions ...int) *fakeBroker {
	return &fakeBroker{facts: brokerapi.PoolFacts{
		Pool: "video", Term: "first", Phase: brokerapi.PhaseReady, NowMS: 10_000_000, Instances: instances(sessions...), EmptyWhen: "sessions",
	}}
}

const pools = `pools: [{namespace: media, pool: video, targetSessionsPerInstance: 10, spareInstances: 1}]`

// start returns a provider whose scaler plans until the bubble ends.
func start(t *testing.T, b *fakeBroker) *adapter.Provider {
	t.Helper()
	list, err := adapter.ParsePools([]byte(pools))
	if err != nil {
		t.Fatal(err)
	}
	s, err := scaler.New(scaler.Options{Source: b, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return adapter.NewProvider(list, b, s)
}

// get asks for a metric as the API server does.
func get(t *testing.T, p *adapter.Provider, namespace, metric, selector string) (string, error) {
	t.Helper()
	parsed, err := labels.Parse(selector)
	if err != nil {
		t.Fatal(err)
	}
	list, err := p.GetExternalMetric(t.Context(), namespace, parsed, provider.ExternalMetricInfo{Metric: metric})
	if err != nil {
		return "", err
	}
	if len(list.Items) != 1 {
		t.Fatalf("got %d values, want one", len(list.Items))
	}
	item := list.Items[0]
	if diff := cmp.Diff(item.MetricLabels, map[string]string{"pool": "video"}); diff != "" || item.MetricName != metric {
		t.Errorf("name %s, labels %s", item.MetricName, diff)
	}
	return item.Value.String(), nil
}

// bubble runs f with a provider in a bubble of its own.
func bubble(t *testing.T, name string, b *fakeBroker, f func(t *testing.T, p *adapter.Provider)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, start(t, b)) })
	})
}

func TestProvider_Desired(t *testing.T) {
	ask := func(t *testing.T, p *adapter.Provider) (string, error) {
		return get(t, p, "media", adapter.MetricDesired, "pool=video")
	}
	b := newBroker(9, 9, 9)
	bubble(t, "the first answer is what has been stored", b, func(t *testing.T, p *adapter.Provider) {
		got, err := ask(t, p)
		if err != nil {
			t.Fatal(err)
		}
		b.set(func(b *fakeBroker) {
			if want := fmt.Sprint(b.facts.Plan.Desired); got != want || want != "4" {
				t.Errorf("got %s, stored %s, want 4", got, want)
			}
		})
	})
	gone := newBroker(9, 9, 9)
	bubble(t, "an answer ends with the time for which it may be repeated", gone, func(t *testing.T, p *adapter.Provider) {
		if _, err := ask(t, p); err != nil {
			t.Fatal(err)
		}
		gone.set(func(b *fakeBroker) { b.err = errors.New("connection refused") })
		time.Sleep(scaler.ServeTTL / 2)
		if got, err := ask(t, p); err != nil || got != "4" {
			t.Errorf("soon after: got %s, %v, want 4", got, err)
		}
		time.Sleep(scaler.ServeTTL)
		if got, err := ask(t, p); !apierrors.IsServiceUnavailable(err) {
			t.Errorf("later: got %q, %v, want that it is unavailable", got, err)
		}
	})
	never := newBroker()
	never.err = errors.New("connection refused")
	bubble(t, "without a broker there is no number", never, func(t *testing.T, p *adapter.Provider) {
		if got, err := ask(t, p); !apierrors.IsServiceUnavailable(err) {
			t.Errorf("got %q, %v, want that it is unavailable", got, err)
		}
	})
	shared := newBroker(9)
	bubble(t, "a pool that somebody else scales is a conflict", shared, func(t *testing.T, p *adapter.Provider) {
		other, err := scaler.New(scaler.Options{Source: shared, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			other.Run(ctx)
		}()
		defer func() { cancel(); <-ended }()
		list, err := adapter.ParsePools([]byte(`pools: [{namespace: elsewhere, pool: video, targetSessionsPerInstance: 10}]`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := get(t, adapter.NewProvider(list, shared, other), "elsewhere", adapter.MetricDesired, "pool=video"); err != nil {
			t.Fatal(err)
		}
		if got, err := ask(t, p); !apierrors.IsConflict(err) {
			t.Errorf("got %q, %v, want a conflict", got, err)
		}
	})
}

func TestProvider_Observed(t *testing.T) {
	both := func(t *testing.T, p *adapter.Provider) (sessions, rooms string, err, errRooms error) {
		sessions, err = get(t, p, "media", adapter.MetricSessions, "pool=video")
		rooms, errRooms = get(t, p, "media", adapter.MetricRooms, "pool in (video)")
		return
	}
	bubble(t, "sessions and rooms are sums over the instances", newBroker(4, 6, 0), func(t *testing.T, p *adapter.Provider) {
		sessions, rooms, err, errRooms := both(t, p)
		if sessions != "10" || rooms != "5" || err != nil || errRooms != nil {
			t.Errorf("got %s sessions, %s rooms, %v, %v, want 10 and 5", sessions, rooms, err, errRooms)
		}
	})
	for name, edit := range map[string]func(in *brokerapi.Instance){
		"an instance that has never answered": func(in *brokerapi.Instance) { in.Sessions, in.AgeMS, in.State = nil, nil, "starting" },
		"an instance with old data":           func(in *brokerapi.Instance) { in.AgeMS, in.State = ptr(int64(30_001)), "suspect" },
	} {
		b := newBroker(4, 6)
		edit(&b.facts.Instances[1])
		bubble(t, "there is no sum of sessions with "+name, b, func(t *testing.T, p *adapter.Provider) {
			sessions, rooms, err, errRooms := both(t, p)
			if !apierrors.IsServiceUnavailable(err) || rooms != "5" || errRooms != nil {
				t.Errorf("got %s sessions, %v, %s rooms, %v; want that the sessions are unavailable, and 5 rooms", sessions, err, rooms, errRooms)
			}
		})
	}
	for _, state := range []string{"released", "lost"} {
		b := newBroker(4, 6)
		b.facts.Instances[1].State, b.facts.Instances[1].AgeMS = state, nil
		bubble(t, "sessions of an instance that is "+state+" are not waited for", b, func(t *testing.T, p *adapter.Provider) {
			if sessions, _, err, _ := both(t, p); sessions != "4" || err != nil {
				t.Errorf("got %s, %v, want 4", sessions, err)
			}
		})
	}
	rebuilding := newBroker(4)
	rebuilding.facts.Phase = brokerapi.PhaseRebuilding
	bubble(t, "a directory that is being rebuilt says nothing", rebuilding, func(t *testing.T, p *adapter.Provider) {
		if _, _, err, errRooms := both(t, p); !apierrors.IsServiceUnavailable(err) || !apierrors.IsServiceUnavailable(errRooms) {
			t.Errorf("got %v and %v, want that both are unavailable", err, errRooms)
		}
	})
}

func TestProvider_Refusals(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace, metric, selector string
		refused                     func(error) bool
	}{
		"an autoscaler elsewhere finds no pool":    {"default", adapter.MetricDesired, "pool=video", apierrors.IsNotFound},
		"a pool that is not configured is unknown": {"media", adapter.MetricDesired, "pool=audio", apierrors.IsNotFound},
		"another metric is unknown":                {"media", "roomscaler_weather", "pool=video", apierrors.IsNotFound},
		"no selector names no pool":                {"media", adapter.MetricDesired, "", apierrors.IsBadRequest},
		"two pools are not one":                    {"media", adapter.MetricDesired, "pool in (audio,video)", apierrors.IsBadRequest},
		"all but one pool are not one":             {"media", adapter.MetricDesired, "pool!=audio", apierrors.IsBadRequest},
		"another label is refused":                 {"media", adapter.MetricDesired, "pool=video,zone=a", apierrors.IsBadRequest},
		"the wrong label is refused":               {"media", adapter.MetricRooms, "name=video", apierrors.IsBadRequest},
	} {
		bubble(t, name, newBroker(1), func(t *testing.T, p *adapter.Provider) {
			if got, err := get(t, p, tc.namespace, tc.metric, tc.selector); !tc.refused(err) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
