// Package keda asks an external scaler as KEDA 2.21 does on behalf of an HPA's sync: which calls in which order, what
// of an answer counts, and what is an error.
package keda

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"

	"github.com/roomscaler/roomscaler/test/lab/hpa"
)

// ErrNoMetrics: the scaler answered without an error and without a metric.
var ErrNoMetrics = errors.New("no matching metrics found")

// Trigger is a ScaledObject's one external trigger.
type Trigger struct {
	Client    externalscaler.ExternalScalerClient
	Name      string // of the ScaledObject
	Namespace string
	Metadata  map[string]string
}

// Answer is what one sync learns.
type Answer struct {
	Metrics []hpa.Metric
	Active  bool
}

// Ask calls GetMetricSpec, then for each metric GetMetrics and IsActive, in this order. An error of any of them, the
// last included, discards everything. As in KEDA an empty spec is asked for once more, and so is a failing pair.
func (t Trigger) Ask(ctx context.Context) (Answer, error) {
	ref := &externalscaler.ScaledObjectRef{Name: t.Name, Namespace: t.Namespace, ScalerMetadata: t.Metadata}
	specs, err := t.specs(ctx, ref)
	if err != nil {
		return Answer{}, err
	}
	var a Answer
	for _, s := range specs {
		m, active, err := t.pair(ctx, ref, s)
		if err != nil {
			m, active, err = t.pair(ctx, ref, s)
		}
		if err != nil {
			return Answer{}, err
		}
		a.Metrics = append(a.Metrics, m)
		a.Active = a.Active || active
	}
	return a, nil
}

func (t Trigger) specs(ctx context.Context, ref *externalscaler.ScaledObjectRef) ([]*externalscaler.MetricSpec, error) {
	for range 2 {
		r, err := t.Client.GetMetricSpec(ctx, ref)
		if err != nil {
			return nil, fmt.Errorf("GetMetricSpec: %w", err)
		}
		if len(r.GetMetricSpecs()) > 0 {
			return r.GetMetricSpecs(), nil
		}
	}
	return nil, fmt.Errorf("GetMetricSpec: %w", ErrNoMetrics)
}

func (t Trigger) pair(ctx context.Context, ref *externalscaler.ScaledObjectRef, s *externalscaler.MetricSpec) (hpa.Metric, bool, error) {
	r, err := t.Client.GetMetrics(ctx, &externalscaler.GetMetricsRequest{ScaledObjectRef: ref, MetricName: s.GetMetricName()})
	if err != nil {
		return hpa.Metric{}, false, fmt.Errorf("GetMetrics: %w", err)
	}
	active, err := t.Client.IsActive(ctx, ref)
	if err != nil {
		return hpa.Metric{}, false, fmt.Errorf("IsActive: %w", err)
	}
	if len(r.GetMetricValues()) == 0 {
		return hpa.Metric{}, false, fmt.Errorf("GetMetrics: %w", ErrNoMetrics)
	}
	m := hpa.Metric{Name: s.GetMetricName(), Target: Quantity(Choose(s.GetTargetSize(), s.GetTargetSizeFloat()))}
	if m.Target <= 0 {
		return hpa.Metric{}, false, fmt.Errorf("GetMetricSpec: the target of %s must be positive", m.Name)
	}
	for _, v := range r.GetMetricValues() { // whatever they are named: the HPA adds them up
		m.Value += Quantity(Choose(v.GetMetricValue(), v.GetMetricValueFloat()))
	}
	return m, active.GetResult(), nil
}

// Choose returns what KEDA takes of an integer field and its successor: the latter only if it is positive.
func Choose(whole int64, float float64) float64 {
	if float > 0 {
		return float
	}
	return float64(whole)
}

// Quantity is the value as the HPA gets it: rounded to thousandths, and 0 for what is negative or no finite number.
func Quantity(v float64) hpa.Milli {
	if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return 0
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'f', 3, 64), 64)
	if err != nil {
		return 0
	}
	return hpa.Milli(math.Round(rounded * 1000))
}
