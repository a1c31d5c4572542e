package redisstore_test

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

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
		if cmd.Name() == "evalsha" {
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
