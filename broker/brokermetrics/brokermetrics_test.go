package brokermetrics_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/brokermetrics"
)

// faultyStore fails each step with err.
type faultyStore struct {
	broker.Store
	err error
}

func (s *faultyStore) Facts(context.Context) (broker.Facts, error) { return broker.Facts{}, s.err }

func example(t *testing.T, facts func(context.Context) (broker.Facts, error)) *prometheus.Registry {
	t.Helper()
	r := prometheus.NewRegistry()
	m, err := brokermetrics.New(r)
	if err := errors.Join(err, brokermetrics.Build(r, "v1"), r.Register(brokermetrics.PoolGauges("video", facts))); err != nil {
		t.Fatal(err)
	}
	m.Request("/v1/pools/{pool}", "GET", 200, time.Millisecond)
	m.Request("", "BREW", 404, time.Millisecond)
	m.Created("video", true, nil)
	m.Created("video", false, nil)
	m.Created("video", false, fmt.Errorf("claim: %w", broker.ErrNoCapacity))
	m.Created("video", false, errors.New("boom"))
	m.Created("video", false, &broker.InvalidError{Field: "room"})
	m.Event(broker.Event{Kind: broker.RoomEnded, Pool: "video", Room: "secret-room"})
	m.Swept("video", broker.SweepReport{Good: 2, Failed: map[broker.Fault]int{broker.FaultTimeout: 1}, Err: errors.New("boom")})
	s := &faultyStore{}
	counted := m.Store("video", s)
	for _, s.err = range []error{nil, broker.ErrStoreUnavailable, broker.ErrStoreLost, broker.ErrTerm, broker.ErrVersion, errors.New("boom")} {
		if _, err := counted.Facts(t.Context()); !errors.Is(err, s.err) {
			t.Errorf("got %v, want %v", err, s.err)
		}
	}
	return r
}

func known(context.Context) (broker.Facts, error) {
	return broker.Facts{
		StoreState: broker.StoreState{Phase: broker.Rebuilding, Now: 10_000},
		Instances: []broker.Instance{
			{Name: "janus-0", Sessions: 5, Participants: 4, Pins: 2, Reserved: 3, LookBegin: 9_000},
			{Name: "janus-1", LookBegin: broker.Never, Pins: 1},
		},
		Plan:   broker.Plan{Version: 1, Desired: 2, Target: 20},
		Demand: broker.Demand{Rooms: 7},
	}, nil
}

// values returns the samples that are not of histograms, by name and labels.
func values(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			key := strings.TrimPrefix(f.GetName(), "roomscaler_") + "{" + strings.Join(labels, ",") + "}"
			switch {
			case m.Counter != nil:
				out[key] = m.GetCounter().GetValue()
			case m.Gauge != nil:
				out[key] = m.GetGauge().GetValue()
			case m.Histogram != nil:
				out[key] = float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return out
}

func TestMetrics(t *testing.T) {
	want := map[string]float64{
		"build_info{version=v1}": 1,
		"broker_requests_total{method=GET,route=/v1/pools/{pool},status=200}": 1,
		"broker_requests_total{method=any,route=none,status=404}":             1,
		"broker_request_duration_seconds{route=/v1/pools/{pool}}":             1,
		"broker_request_duration_seconds{route=none}":                         1,
		"broker_creates_total{outcome=created,pool=video}":                    1,
		"broker_creates_total{outcome=existing,pool=video}":                   1,
		"broker_creates_total{outcome=no_capacity,pool=video}":                1,
		"broker_creates_total{outcome=other,pool=video}":                      1,
		"broker_creates_total{outcome=invalid,pool=video}":                    1,
		"broker_events_total{kind=room_ended,pool=video}":                     1,
		"broker_sweep_duration_seconds{pool=video}":                           1,
		"broker_sweep_failures_total{pool=video}":                             1,
		"broker_looks_total{outcome=ok,pool=video}":                           2,
		"broker_looks_total{outcome=timeout,pool=video}":                      1,
		"broker_store_errors_total{kind=unavailable,pool=video,step=facts}":   1,
		"broker_store_errors_total{kind=lost,pool=video,step=facts}":          1,
		"broker_store_errors_total{kind=term,pool=video,step=facts}":          1,
		"broker_store_errors_total{kind=other,pool=video,step=facts}":         1,
		"pool_instances{pool=video,state=ready}":                              1,
		"pool_instances{pool=video,state=starting}":                           1,
		"pool_instances{pool=video,state=cordoned}":                           0,
		"pool_instances{pool=video,state=released}":                           0,
		"pool_instances{pool=video,state=suspect}":                            0,
		"pool_instances{pool=video,state=lost}":                               0,
		"pool_sessions{pool=video}":                                           5,
		"pool_participants{pool=video}":                                       4,
		"pool_rooms{pool=video}":                                              3,
		"pool_reserved_participants{pool=video}":                              3,
		"pool_queue_rooms{pool=video}":                                        7,
		"pool_desired_instances{pool=video}":                                  2,
		"pool_target_sessions{pool=video}":                                    20,
		"pool_rebuilding{pool=video}":                                         1,
		"instance_sessions{instance=janus-0,pool=video}":                      5,
		"instance_rooms{instance=janus-0,pool=video}":                         2,
		"instance_rooms{instance=janus-1,pool=video}":                         1,
		"instance_age_seconds{instance=janus-0,pool=video}":                   1,
	}
	if diff := cmp.Diff(want, values(t, example(t, known))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPoolGauges_UnknownIsAbsent(t *testing.T) {
	r := example(t, func(context.Context) (broker.Facts, error) { return broker.Facts{}, broker.ErrStoreUnavailable })
	for key, v := range values(t, r) {
		if strings.HasPrefix(key, "pool_") || strings.HasPrefix(key, "instance_") {
			t.Errorf("%s is %v", key, v)
		}
	}
}

func TestNames(t *testing.T) {
	families, err := example(t, known).Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "roomscaler_") || f.GetHelp() == "" {
			t.Errorf("%s: prefix or help", f.GetName())
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "room" || strings.Contains(l.GetValue(), "secret-room") {
					t.Errorf("%s names a room", f.GetName())
				}
			}
		}
	}
}
