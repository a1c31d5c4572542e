package scaler

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The names of the scaler's metrics. Gauges carry pool, namespace and scaled_object.
const (
	metricDesired = "roomscaler_scaler_desired_instances"
	metricNow     = "roomscaler_scaler_needed_instances"
	metricCool    = "roomscaler_scaler_cooldown_instances"
	metricFloor   = "roomscaler_scaler_floor_instances"
	metricAge     = "roomscaler_scaler_decision_age_seconds"
	metricAnswers = "roomscaler_scaler_answers_total"
	metricLooks   = "roomscaler_scaler_looks_total"
	metricMode    = "roomscaler_scaler_tolerance_mode"
	metricRisk    = "roomscaler_scaler_risk"
)

// metrics counts what the scaler does, and shows the planners' views when it is read.
type metrics struct {
	scaler  *Scaler
	answers *prometheus.CounterVec
	looks   *prometheus.CounterVec

	desired, now, cool, floor, age, mode, risk *prometheus.Desc
}

func newMetrics(r prometheus.Registerer, s *Scaler) (*metrics, error) {
	gauge := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{"pool", "namespace", "scaled_object"}, more...), nil)
	}
	m := &metrics{
		scaler: s,
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: metricAnswers, Help: "Answers to GetMetrics by outcome: value, hold, unknown, taken, invalid or refused.",
		}, []string{"outcome"}),
		looks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: metricLooks, Help: "Looks at pools by outcome: stored, unchanged, held, contended or failed.",
		}, []string{"outcome"}),
		desired: gauge(metricDesired, "The stored number of instances, as last fetched."),
		now:     gauge(metricNow, "The number of instances that the present load needs."),
		cool:    gauge(metricCool, "The greatest number that the load needed within the cool-down window."),
		floor:   gauge(metricFloor, "One more than the highest ordinal that may not go."),
		age:     gauge(metricAge, "The time since the fetch of the stored number began."),
		mode:    gauge(metricMode, "Always 1; mode says how the autoscaler's tolerance is reckoned with: exact, band or unread.", "mode"),
		risk:    gauge(metricRisk, "1 for each risk that the last decision tells of; absent without.", "code"),
	}
	if r == nil {
		return m, nil
	}
	return m, errors.Join(r.Register(m), r.Register(m.answers), r.Register(m.looks))
}

func (m *metrics) answered(err error) {
	var (
		target  *TargetError
		taken   *takenError
		unknown *unknownError
		hold    *holdError
	)
	outcome := "refused"
	switch {
	case err == nil:
		outcome = "value"
	case errors.As(err, &hold):
		outcome = "hold"
	case errors.As(err, &unknown):
		outcome = "unknown"
	case errors.As(err, &taken):
		outcome = "taken"
	case errors.As(err, &target):
		outcome = "invalid"
	}
	m.answers.WithLabelValues(outcome).Inc()
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.desired, m.now, m.cool, m.floor, m.age, m.mode, m.risk} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. A planner without a view shows nothing, not 0.
func (m *metrics) Collect(ch chan<- prometheus.Metric) {
	m.scaler.mu.Lock()
	planners := make([]*planner, 0, len(m.scaler.planners))
	for _, p := range m.scaler.planners {
		planners = append(planners, p)
	}
	m.scaler.mu.Unlock()
	for _, p := range planners {
		p.mu.Lock()
		v, pool := p.view, p.target.Pool
		p.mu.Unlock()
		if v.hold != nil || v.began.IsZero() {
			continue
		}
		show := func(d *prometheus.Desc, n float64, more ...string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, n, append([]string{pool, p.ref.Namespace, p.ref.Name}, more...)...)
		}
		show(m.desired, float64(v.desired))
		show(m.now, float64(v.why.Dnow))
		show(m.cool, float64(v.why.Dcool))
		show(m.floor, float64(v.why.Floor))
		show(m.age, time.Since(v.began).Seconds())
		show(m.mode, 1, string(v.scale.mode()))
		for code := range codesOf(v.risks) {
			show(m.risk, 1, code)
		}
	}
}
