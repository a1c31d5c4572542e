package httpapi

import (
	"context"
	"strings"
	"time"
	"unicode"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

func listInstances(ctx context.Context, _ *Handler, c *call) (answer, error) {
	f, err := c.pool().Facts(ctx)
	if err != nil {
		return answer{}, err
	}
	return answer{body: brokerapi.Instances{Instances: instances(f.Instances, f.Now)}}, nil
}

func getInstance(ctx context.Context, _ *Handler, c *call) (answer, error) {
	in, now, err := c.pool().Instance(ctx, c.names["instance"])
	if err != nil {
		return answer{}, err
	}
	return answer{body: instance(in, now)}, nil
}

func drain(ctx context.Context, _ *Handler, c *call) (answer, error) {
	var in brokerapi.DrainRequest
	if err := decode(c.body, &in); err != nil {
		return answer{}, err
	}
	owner, err := c.who.owner(in.Owner)
	if err != nil {
		return answer{}, err
	}
	m := broker.MarkRequest{Owner: owner, Reason: in.Reason}
	if len(in.Reason) > 256 || strings.ContainsFunc(in.Reason, unicode.IsControl) {
		return answer{}, invalid("reason", "give at most 256 bytes without control characters")
	}
	if in.Grace != "" {
		if m.Grace, err = time.ParseDuration(in.Grace); err != nil || m.Grace <= 0 {
			return answer{}, invalid("grace", "give a duration such as 1h30m, or leave it out for no deadline")
		}
	}
	s, err := c.pool().Drain(ctx, c.names["instance"], m)
	if err != nil {
		return answer{}, err
	}
	return answer{body: drainOf(s)}, nil
}

func drainStatus(ctx context.Context, _ *Handler, c *call) (answer, error) {
	owner, err := c.who.ownerToRead(c.query.owner)
	if err != nil {
		return answer{}, err
	}
	s, err := hold(ctx, c, owner)
	if err != nil {
		return answer{}, err
	}
	return answer{body: drainOf(s)}, nil
}

// hold waits for the drain's end; when this broker stops it answers how things are,
// so that the caller goes on with another broker and stopping takes no minute.
func hold(ctx context.Context, c *call, owner broker.Owner) (broker.DrainStatus, error) {
	held, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-c.stopping:
			cancel()
		case <-held.Done():
		}
	}()
	s, err := c.pool().DrainStatus(held, c.names["instance"], owner, c.query.wait)
	cut := err != nil && held.Err() != nil && ctx.Err() == nil
	cancel()
	<-done
	if cut {
		return c.pool().DrainStatus(ctx, c.names["instance"], owner, 0)
	}
	return s, err
}

func uncordon(ctx context.Context, h *Handler, c *call) (answer, error) {
	owner, err := c.who.owner(c.query.owner)
	if err != nil {
		return answer{}, err
	}
	if _, err := c.pool().Uncordon(ctx, c.names["instance"], owner); err != nil {
		return answer{}, err
	}
	return getInstance(ctx, h, c)
}

func lost(ctx context.Context, _ *Handler, c *call) (answer, error) {
	var in brokerapi.LostRequest
	if err := decode(c.body, &in); err != nil {
		return answer{}, err
	}
	ended, err := c.pool().Lost(ctx, c.names["instance"], in.Incarnation)
	if err != nil {
		return answer{}, err
	}
	return answer{body: brokerapi.Lost{Instance: c.names["instance"], RoomsEnded: len(ended)}}, nil
}
