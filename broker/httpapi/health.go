package httpapi

import (
	"context"
	"slices"
	"strings"
)

type health struct {
	Status string `json:"status"`
}

// live is local: a store or an instance that is away is no reason to restart a broker.
func live(context.Context, *Handler, *call) (answer, error) {
	return answer{body: health{"alive"}}, nil
}

func ready(_ context.Context, h *Handler, _ *call) (answer, error) {
	select {
	case <-h.stopping:
		return answer{}, &detailError{"the broker is stopping", errNotReady}
	default:
	}
	var missing []string
	for name, s := range *h.pools.Load() {
		if !s.Pool.Swept() {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		slices.Sort(missing)
		return answer{}, &detailError{"the first sweep is not over of pool " + strings.Join(missing, ", "), errNotReady}
	}
	return answer{body: health{"ready"}}, nil
}
