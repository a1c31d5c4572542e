package redisstore

import (
	"embed"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/roomscaler/roomscaler/broker"
)

//go:embed *.lua
var sources embed.FS

// Commands are the commands that a user of the server's ACL has to be allowed, besides
// those that connect.
const Commands = "eval evalsha info time del hget hmget hset hdel hgetall hkeys hvals zadd zrem zrangebylex zrangebyscore"

// keyNames are the last parts of a pool's keys, in the order in which scripts know them.
const keyNames = "meta pins rooms homes ages instances tombs dead ended demand wanted plan"

// keysOf returns a pool's keys.
func keysOf(pool string) []string {
	keys := strings.Fields(keyNames)
	for i, name := range keys {
		keys[i] = "roomscaler:{" + pool + "}:" + name
	}
	return keys
}

// lookupKeys is how many of the keys Lookup uses.
const lookupKeys = 2

// scripts are the steps.
type scripts struct {
	state, begin, assert, finish                       *redis.Script
	claim, confirm, lookup, end, pins, tombs, adopt    *redis.Script
	record, rebirth, mark, unmark, fence, forget, plan *redis.Script
	facts                                              *redis.Script
}

func newScripts(stepCap time.Duration) (scripts, error) {
	var failed error
	part := func(name string) string {
		b, err := sources.ReadFile(name + ".lua")
		if err != nil && failed == nil {
			failed = err
		}
		return string(b)
	}
	head := fmt.Sprintf("local STEP_CAP = %d\nlocal TOMBSTONE_TTL, DEMAND_TTL = %d, %d\n",
		stepCap.Microseconds(), broker.TombstoneTTL.Milliseconds(), broker.DemandTTL.Milliseconds()) + part("prelude")
	short := head + part("pin")
	long := short + part("instance")
	step := func(name string) *redis.Script { return redis.NewScript(long + part(name)) }
	s := scripts{
		state: step("state"), begin: step("begin"), assert: step("assert"), finish: step("finish"),
		claim: step("claim"), confirm: step("confirm"), end: step("end"), pins: step("pins"), tombs: step("tombstones"), adopt: step("adopt"),
		record: step("record"), rebirth: step("rebirth"), mark: step("mark"), unmark: step("unmark"),
		fence: step("fence"), forget: step("forget"), plan: step("plan"), facts: step("facts"),
		lookup: redis.NewScript(short + part("lookup")),
	}
	return s, failed
}
