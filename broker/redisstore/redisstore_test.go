package redisstore_test

import (
	"testing"

	"github.com/roomscaler/roomscaler/broker/storetest"
	"github.com/roomscaler/roomscaler/test/procs"
)

func TestStore_Miniredis(t *testing.T) { storetest.Run(t, openMini) }

func TestStore_Redis(t *testing.T) {
	storetest.RunReal(t, openReal(startRedis(t, procs.RedisOptions{})))
}
