package broker

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"
)

// maxQueue bounds how many creates one broker lets wait for a place in its pool.
const maxQueue = 1000

// Of a waiting create: how often the first in the queue tries without being woken, and how
// often any of them renews its demand, which the store forgets after DemandTTL.
const (
	queuePoll  = 500 * time.Millisecond
	queueRenew = DemandTTL / 2
)

// CreateRoomWithin is CreateRoom for a caller that would rather wait than hear ErrNoCapacity: it holds the answer for at most
// wait until there is a place. Of those that wait, who came first is served first; a call that finds a place at once
// does not wait for them. Each room that waits counts once as demand, which raises the number of instances. ErrQueueFull when too many wait already.
func (s *Service) CreateRoomWithin(ctx context.Context, r CreateRequest, wait time.Duration) (Placed, bool, error) {
	p, fresh, err := s.CreateRoom(ctx, r)
	if wait <= 0 || !errors.Is(err, ErrNoCapacity) {
		return p, fresh, err
	}
	t := s.queue.join()
	if t == nil {
		return Placed{}, false, ErrQueueFull
	}
	defer s.queue.leave(t)
	end := time.NewTimer(wait)
	defer end.Stop()
	renew := time.NewTicker(queueRenew)
	defer renew.Stop()
	for {
		next := s.changed.wait()
		select {
		case <-end.C:
			return Placed{}, false, err
		case <-ctx.Done():
			return Placed{}, false, ctx.Err()
		case <-renew.C:
		case <-t.turn:
			if !s.awaitChange(ctx, next, end.C) {
				return Placed{}, false, cmp.Or(ctx.Err(), err)
			}
		}
		if p, fresh, err = s.CreateRoom(ctx, r); !errors.Is(err, ErrNoCapacity) {
			return p, fresh, err
		}
	}
}

// awaitChange blocks until a sweep has ended or it is worth another try; false when it is too late.
func (s *Service) awaitChange(ctx context.Context, next <-chan struct{}, end <-chan time.Time) bool {
	poll := time.NewTimer(queuePoll)
	defer poll.Stop()
	select {
	case <-next:
	case <-poll.C:
	case <-end:
		return false
	case <-ctx.Done():
		return false
	}
	return true
}

// queue is a bounded line: the first ticket has its turn, until it leaves.
type queue struct {
	mu   sync.Mutex
	line []*ticket
}

// ticket is a place in the line. turn is closed when it is the first.
type ticket struct{ turn chan struct{} }

func (q *queue) join() *ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.line) >= maxQueue {
		return nil
	}
	t := &ticket{make(chan struct{})}
	q.line = append(q.line, t)
	if len(q.line) == 1 {
		close(t.turn)
	}
	return t
}

func (q *queue) leave(t *ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, o := range q.line {
		if o != t {
			continue
		}
		q.line = append(q.line[:i], q.line[i+1:]...)
		if i == 0 && len(q.line) > 0 {
			close(q.line[0].turn)
		}
		return
	}
}
