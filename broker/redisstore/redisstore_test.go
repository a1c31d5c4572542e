package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/roomscaler/roomscaler/broker/memstore"
	"github.com/roomscaler/roomscaler/broker/storetest"
	"github.com/roomscaler/roomscaler/test/procs"
)

func TestStore_Miniredis(t *testing.T) { storetest.Run(t, openMini) }

// twice sends every script twice, as the client does when an answer was lost.
type twice struct{}

func (twice) DialHook(next redis.DialHook) redis.DialHook { return next }
func (twice) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (twice) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if name := cmd.Name(); name == "evalsha" || name == "eval" {
			if err := next(ctx, cmd); err != nil {
				return err // not known yet: package redis sends the whole script
			}
		}
		return next(ctx, cmd)
	}
}

func TestStore_Retried(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Subject { return subjectOf(t, startMini(t), twice{}) })
}

func TestStore_Redis(t *testing.T) {
	storetest.RunReal(t, openReal(startRedis(t, procs.RedisOptions{})))
}

func TestStore_Linearizable(t *testing.T) {
	storetest.Linearizable(t, openReal(startRedis(t, procs.RedisOptions{})), 30)
}

// TestStore_SameAsMemory: the two products of broker.Store cannot be told apart.
func TestStore_SameAsMemory(t *testing.T) {
	storetest.Same(t, openMemory, openMini)
}

func openMemory(t *testing.T) storetest.Subject {
	now := clockStart
	return storetest.Subject{
		Store:   memstore.New(memstore.Options{StepCap: storetest.StepCap, Now: func() time.Time { return now }}),
		Advance: func(d time.Duration) { now = now.Add(d) },
	}
}
