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
	var s broker.DrainStatus
	status := func(wait time.Duration) func(context.Context) error {
		return func(ctx context.Context) (err error) {
			s, err = c.pool().DrainStatus(ctx, c.names["instance"], owner, wait)
			return err
		}
	}
	cut, err := untilStop(ctx, c, status(c.query.wait))
	if cut {
		err = status(0)(ctx)
	}
	if err != nil {
		return answer{}, err
	}
	return answer{body: drainOf(s)}, nil
}

// untilStop runs what may wait, until this broker stops: then the caller is answered, so that it
// goes on with another broker and stopping takes no minute. cut: it was, and the error says nothing.
func untilStop(ctx context.Context, c *call, fn func(context.Context) error) (cut bool, err error) {
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
	err = fn(held)
	cut = err != nil && held.Err() != nil && ctx.Err() == nil
	cancel()
	<-done
	return cut, err
}

func uncordon(ctx context.Context, h *Handler, c *call) (answer, error) {
	owner, err := c.who.ownerToRemove(c.query.owner)
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
