package naive_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/roomscaler/roomscaler/test/lab/naive"
)

func TestScaler_GetMetrics(t *testing.T) {
	for sessions, want := range map[int]float64{0: 0, 1: 1, 10: 1, 11: 2, 54: 6} {
		t.Run(fmt.Sprintf("%d sessions of 10 want %v", sessions, want), func(t *testing.T) {
			s := naive.Scaler{Target: 10, Sessions: func(context.Context) (int, error) { return sessions, nil }}
			r, err := s.GetMetrics(t.Context(), &externalscaler.GetMetricsRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if v := r.GetMetricValues(); len(v) != 1 || v[0].GetMetricValueFloat() != want || v[0].GetMetricValue() != int64(want) {
				t.Errorf("got %v", v)
			}
		})
	}
	t.Run("a count that cannot be had is unavailable", func(t *testing.T) {
		s := naive.Scaler{Target: 10, Sessions: func(context.Context) (int, error) { return 0, errors.New("no broker") }}
		if _, err := s.GetMetrics(t.Context(), &externalscaler.GetMetricsRequest{}); status.Code(err) != codes.Unavailable {
			t.Errorf("got %v", err)
		}
	})
}
