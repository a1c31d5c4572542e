package load

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

// Directory is what the application asks of a broker.
type Directory interface {
	// Open creates the room or returns it as it is.
	Open(ctx context.Context, room string, people int) (brokerapi.Pin, error)
	// Close tears the room down.
	Close(ctx context.Context, room string) error
}

// Brokers is a Directory over several replicas: each call goes to the next one, and to the others
// when that does not answer.
type Brokers struct {
	Pool    string
	Clients []*brokerapi.Client
	turn    atomic.Uint64
}

// Open implements Directory.
func (b *Brokers) Open(ctx context.Context, room string, people int) (pin brokerapi.Pin, err error) {
	err = b.each(func(c *brokerapi.Client) error {
		var err error
		pin, _, err = c.CreateRoom(ctx, b.Pool, room, brokerapi.CreateRoom{ExpectedParticipants: people})
		return err
	})
	return pin, err
}

// Close implements Directory.
func (b *Brokers) Close(ctx context.Context, room string) error {
	return b.each(func(c *brokerapi.Client) error { return c.DeleteRoom(ctx, b.Pool, room, 0) })
}

// Facts asks what a scaler would of the pool.
func (b *Brokers) Facts(ctx context.Context) (f brokerapi.PoolFacts, err error) {
	err = b.each(func(c *brokerapi.Client) error {
		var err error
		f, err = c.Facts(ctx, b.Pool)
		return err
	})
	return f, err
}

func (b *Brokers) each(call func(*brokerapi.Client) error) error {
	first := b.turn.Add(1)
	var errs []error
	for i := range b.Clients {
		err := call(b.Clients[(first+uint64(i))%uint64(len(b.Clients))])
		var problem *brokerapi.Problem
		if err == nil || errors.As(err, &problem) { // it has answered: the others would say the same
			return err
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
