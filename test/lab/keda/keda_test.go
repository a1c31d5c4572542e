package keda_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"

	"github.com/roomscaler/roomscaler/test/lab/hpa"
	"github.com/roomscaler/roomscaler/test/lab/keda"
)

// scripted answers as told and notes the calls.
type scripted struct {
	externalscaler.ExternalScalerClient
	calls                        []string
	specs                        []*externalscaler.MetricSpec
	values                       []*externalscaler.MetricValue
	specErr, valuesErr, activeEr []error // consumed one by one
}

func next(list *[]error) error {
	if len(*list) == 0 {
		return nil
	}
	err := (*list)[0]
	*list = (*list)[1:]
	return err
}

func (s *scripted) GetMetricSpec(context.Context, *externalscaler.ScaledObjectRef, ...grpc.CallOption) (*externalscaler.GetMetricSpecResponse, error) {
	s.calls = append(s.calls, "GetMetricSpec")
	return &externalscaler.GetMetricSpecResponse{MetricSpecs: s.specs}, next(&s.specErr)
}

func (s *scripted) GetMetrics(_ context.Context, r *externalscaler.GetMetricsRequest, _ ...grpc.CallOption) (*externalscaler.GetMetricsResponse, error) {
	s.calls = append(s.calls, "GetMetrics "+r.GetMetricName())
	return &externalscaler.GetMetricsResponse{MetricValues: s.values}, next(&s.valuesErr)
}

func (s *scripted) IsActive(context.Context, *externalscaler.ScaledObjectRef, ...grpc.CallOption) (*externalscaler.IsActiveResponse, error) {
	s.calls = append(s.calls, "IsActive")
	return &externalscaler.IsActiveResponse{Result: true}, next(&s.activeEr)
}

func TestTrigger_Ask(t *testing.T) {
	spec := []*externalscaler.MetricSpec{{MetricName: "m", TargetSize: 1, TargetSizeFloat: 1}}
	value := func(v ...*externalscaler.MetricValue) []*externalscaler.MetricValue { return v }
	five := value(&externalscaler.MetricValue{MetricValue: 5, MetricValueFloat: 5})
	gone := errors.New("unavailable")
	once := []string{"GetMetricSpec", "GetMetrics m", "IsActive"}
	for _, tt := range []struct {
		name  string
		s     scripted
		want  hpa.Milli
		err   error
		calls []string
	}{
		{"spec, metrics and activity are asked in this order", scripted{specs: spec, values: five}, 5000, nil, once},
		{"an integer alone counts", scripted{specs: spec, values: value(&externalscaler.MetricValue{MetricValue: 3})}, 3000, nil, once},
		{"a float above zero wins over the integer", scripted{specs: spec, values: value(&externalscaler.MetricValue{MetricValue: 3, MetricValueFloat: 4.5})}, 4500, nil, once},
		{"a negative float falls back to the integer", scripted{specs: spec, values: value(&externalscaler.MetricValue{MetricValue: 3, MetricValueFloat: -1})}, 3000, nil, once},
		{"values are added up whatever their names", scripted{specs: spec, values: append(value(&externalscaler.MetricValue{MetricName: "x", MetricValue: 3}), five...)}, 8000, nil, once},
		{"an error of IsActive discards good values", scripted{specs: spec, values: five, activeEr: []error{gone, gone}}, 0, gone,
			[]string{"GetMetricSpec", "GetMetrics m", "IsActive", "GetMetrics m", "IsActive"}},
		{"a failing pair is asked once more at once", scripted{specs: spec, values: five, valuesErr: []error{gone}}, 5000, nil,
			[]string{"GetMetricSpec", "GetMetrics m", "GetMetrics m", "IsActive"}},
		{"no metric is read when the spec fails", scripted{specs: spec, values: five, specErr: []error{gone}}, 0, gone, []string{"GetMetricSpec"}},
		{"an empty spec is asked for twice, then an error", scripted{values: five}, 0, keda.ErrNoMetrics, []string{"GetMetricSpec", "GetMetricSpec"}},
		{"an empty list of values is an error", scripted{specs: spec}, 0, keda.ErrNoMetrics, []string{"GetMetricSpec", "GetMetrics m", "IsActive", "GetMetrics m", "IsActive"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, err := keda.Trigger{Client: &tt.s}.Ask(t.Context())
			if !errors.Is(err, tt.err) || (err != nil) != (tt.err != nil) {
				t.Fatalf("error: got %v, want %v", err, tt.err)
			}
			if !slices.Equal(tt.s.calls, tt.calls) {
				t.Errorf("calls: got %q, want %q", tt.s.calls, tt.calls)
			}
			if err != nil {
				return
			}
			want := keda.Answer{Metrics: []hpa.Metric{{Name: "m", Value: tt.want, Target: 1000}}, Active: true}
			if d := cmp.Diff(want, a); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
	t.Run("a target of zero is refused as the API server refuses it", func(t *testing.T) {
		s := scripted{specs: []*externalscaler.MetricSpec{{MetricName: "m"}}, values: five}
		if _, err := (keda.Trigger{Client: &s}).Ask(t.Context()); err == nil {
			t.Error("no error")
		}
	})
}

func TestQuantity(t *testing.T) {
	for v, want := range map[float64]hpa.Milli{-3: 0, math.Inf(1): 0, 0.0004: 0, 2.0006: 2001, 2: 2000, 7.5: 7500} {
		if got := keda.Quantity(v); got != want {
			t.Errorf("%v: got %d, want %d", v, got, want)
		}
	}
	if got := keda.Quantity(math.NaN()); got != 0 {
		t.Errorf("NaN: got %d, want 0", got)
	}
}
