package brokermetrics

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/roomscaler/roomscaler/broker"
)

// Metrics counts what a broker does. All methods are safe for concurrent use and do not block.
type Metrics struct {
	requests       *prometheus.CounterVec
	requestSeconds *prometheus.HistogramVec
	creates        *prometheus.CounterVec
	events         *prometheus.CounterVec
	sweepSeconds   *prometheus.HistogramVec
	sweepFailures  *prometheus.CounterVec
	looks          *prometheus.CounterVec
	storeErrors    *prometheus.CounterVec
}

// New registers the metrics. It fails if one of their names is taken.
func New(r prometheus.Registerer) (*Metrics, error) {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		requests: counter(nameRequests, "Requests answered, by route, method and status.", "route", "method", "status"),
		requestSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: nameRequestSeconds, Help: "Time to answer a request, a drain's held ones included.", Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9),
		}, []string{"route"}),
		creates: counter(nameCreates, "Calls to create a room, by outcome: created, existing, or what hindered.", "pool", "outcome"),
		events:  counter(nameEvents, "Events, by kind.", "pool", "kind"),
		sweepSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: nameSweepSeconds, Help: "Time that a sweep took.", Buckets: prometheus.ExponentialBuckets(0.005, 3, 8),
		}, []string{"pool"}),
		sweepFailures: counter(nameSweepFailures, "Sweeps that the store or the finder hindered.", "pool"),
		looks:         counter(nameLooks, "Looks at instances, by outcome: ok or the fault.", "pool", "outcome"),
		storeErrors:   counter(nameStoreErrors, "Failed steps of the store, by step and kind: unavailable, lost, term, other.", "pool", "step", "kind"),
	}
	return m, register(r, m.requests, m.requestSeconds, m.creates, m.events, m.sweepSeconds, m.sweepFailures, m.looks, m.storeErrors)
}

// Build registers a gauge of value 1 that tells the version.
func Build(r prometheus.Registerer, version string) error {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: nameBuild, Help: "Always 1; the version is a label.", ConstLabels: prometheus.Labels{"version": version}})
	g.Set(1)
	return r.Register(g)
}

func register(r prometheus.Registerer, all ...prometheus.Collector) error {
	var errs []error
	for _, c := range all {
		errs = append(errs, r.Register(c))
	}
	return errors.Join(errs...)
}

// Request counts an answered request. The route is a pattern, never a path.
func (m *Metrics) Request(route, method string, status int, took time.Duration) {
	if route == "" {
		route, method = "none", "any" // strangers choose methods freely
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	m.requestSeconds.WithLabelValues(route).Observe(took.Seconds())
}

// Created counts a call to create a room.
func (m *Metrics) Created(pool string, fresh bool, err error) {
	outcome := "other"
	switch {
	case err == nil && fresh:
		outcome = "created"
	case err == nil:
		outcome = "existing"
	default:
		for _, known := range []struct {
			err  error
			name string
		}{
			{broker.ErrNoCapacity, "no_capacity"}, {broker.ErrNeverFits, "never_fits"}, {broker.ErrSettingsDiffer, "settings_differ"},
			{broker.ErrRebuilding, "rebuilding"}, {broker.ErrStoreUnavailable, "store_unavailable"},
			{broker.ErrUncertain, "instance_unreachable"}, {broker.ErrRefused, "instance_refused"},
		} {
			if errors.Is(err, known.err) {
				outcome = known.name
				break
			}
		}
		if _, ok := errors.AsType[*broker.InvalidError](err); ok {
			outcome = "invalid"
		}
	}
	m.creates.WithLabelValues(pool, outcome).Inc()
}

// Event counts an event.
func (m *Metrics) Event(e broker.Event) { m.events.WithLabelValues(e.Pool, string(e.Kind)).Inc() }

// Swept counts a sweep and its looks.
func (m *Metrics) Swept(pool string, r broker.SweepReport) {
	m.sweepSeconds.WithLabelValues(pool).Observe(r.Took.Seconds())
	if r.Err != nil {
		m.sweepFailures.WithLabelValues(pool).Inc()
	}
	m.looks.WithLabelValues(pool, "ok").Add(float64(r.Good))
	for fault, n := range r.Failed {
		m.looks.WithLabelValues(pool, string(fault)).Add(float64(n))
	}
}
