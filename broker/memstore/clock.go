package memstore

import (
	"time"

	"github.com/roomscaler/roomscaler/broker"
)

// clock is the pool's clock. It starts at the wall clock of its first step, so that
// what happened before can be told by earlier times, and goes its own way from there.
// It counts finer than it is read, so that frequent steps lose no time.
type clock struct {
	running bool
	wall    time.Time     // of the last step
	now     time.Duration // since the wall clock's own zero
	gap     broker.PoolTime
}

// advance adds what the wall clock has gone on since the last step, at most limit.
func (c *clock) advance(wall time.Time, limit time.Duration) broker.PoolTime {
	if !c.running {
		*c = clock{running: true, wall: wall, now: time.Duration(wall.UnixNano()), gap: broker.Never}
		return c.pool()
	}
	passed := max(0, wall.Sub(c.wall))
	c.wall = wall
	c.now += min(passed, limit)
	if passed > limit {
		c.gap = c.pool()
	}
	return c.pool()
}

func (c *clock) pool() broker.PoolTime { return broker.PoolTime(c.now / time.Millisecond) }
