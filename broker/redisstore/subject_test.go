package redisstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/roomscaler/roomscaler/broker/redisstore"
	"github.com/roomscaler/roomscaler/broker/storetest"
	"github.com/roomscaler/roomscaler/test/procs"
)

// pools numbers the pools of this test binary, so that each case has one of its own.
var pools atomic.Int64

func freshPool() string { return fmt.Sprintf("pool-%d", pools.Add(1)) }

// options are those that the suite asks for, for a pool of its own.
func options() redisstore.Options {
	return redisstore.Options{Pool: freshPool(), StepCap: storetest.StepCap, Timeout: 10 * time.Second}
}

// clockStart is where the clock of a miniredis begins.
var clockStart = time.Date(2026, 3, 1, 12, 0, 0, 123_456_000, time.UTC)

// mini is a Redis in this process with a clock that stands still. It has no INFO replication, so a
// hook answers that in its place.
type mini struct {
	*miniredis.Miniredis
	history atomic.Int64
	now     time.Time
}

func startMini(t *testing.T) *mini {
	t.Helper()
	m := &mini{Miniredis: miniredis.RunT(t), now: clockStart}
	m.SetTime(m.now)
	m.Server().SetPreHook(func(c *server.Peer, cmd string, args ...string) bool {
		if cmd != "INFO" {
			return false
		}
		c.WriteBulk(fmt.Sprintf("# Replication\r\nrole:master\r\nmaster_replid:%040x\r\n", m.history.Load()))
		return true
	})
	return m
}

func (m *mini) advance(d time.Duration) {
	m.now = m.now.Add(d)
	m.SetTime(m.now)
}

func openMini(t *testing.T) storetest.Subject { return subjectOf(t, startMini(t)) }

func subjectOf(t *testing.T, m *mini, hooks ...redis.Hook) storetest.Subject {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: m.Addr(), Protocol: 2, DisableIdentity: true})
	for _, h := range hooks {
		client.AddHook(h)
	}
	return storetest.Subject{
		Store:   newStore(t, client),
		Advance: m.advance,
		Lose:    m.FlushAll,
		Copy: func() func() {
			restore := copyAll(t, client)
			return func() {
				restore()
				m.history.Add(1)
			}
		},
	}
}

func newStore(t *testing.T, client redis.UniversalClient) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(client, options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func openURL(t *testing.T, url string, o redisstore.Options) *redisstore.Store {
	t.Helper()
	s, err := redisstore.Open(url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// copyAll remembers all keys; what it returns brings them back and removes all others.
func copyAll(t *testing.T, client redis.UniversalClient) func() {
	t.Helper()
	ctx := t.Context()
	keys := must(client.Keys(ctx, "*").Result())(t)
	hashes, sets := map[string]map[string]string{}, map[string][]redis.Z{}
	for _, key := range keys {
		if must(client.Type(ctx, key).Result())(t) == "hash" {
			hashes[key] = must(client.HGetAll(ctx, key).Result())(t)
		} else {
			sets[key] = must(client.ZRangeWithScores(ctx, key, 0, -1).Result())(t)
		}
	}
	return func() {
		must(client.FlushAll(ctx).Result())(t)
		for key, fields := range hashes {
			must(client.HSet(ctx, key, fields).Result())(t)
		}
		for key, members := range sets {
			must(client.ZAdd(ctx, key, members...).Result())(t)
		}
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// startRedis starts a real Redis for this test. DEBUG may be used there.
func startRedis(t *testing.T, o procs.RedisOptions) *procs.Redis {
	t.Helper()
	if !o.Sentinel {
		o.Config = append(o.Config, "enable-debug-command local", "repl-diskless-sync-delay 0")
	}
	r, err := procs.StartRedis(context.WithoutCancel(t.Context()), o)
	procs.Need(t, err)
	t.Cleanup(r.Kill)
	return r
}

func clientOf(t *testing.T, r *procs.Redis) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: r.Addr(), Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { c.Close() })
	return c
}

// openReal returns an Opener of pools on one real server.
func openReal(r *procs.Redis) storetest.Opener {
	return func(t *testing.T) storetest.Subject {
		t.Helper()
		client := clientOf(t, r)
		return storetest.Subject{
			Store: openURL(t, "redis://"+r.Addr(), options()),
			Lose:  func() { must(client.FlushAll(t.Context()).Result())(t) },
			Copy: func() func() {
				restore := copyAll(t, client)
				return func() {
					restore()
					must(client.Do(t.Context(), "DEBUG", "CHANGE-REPL-ID").Result())(t)
				}
			},
		}
	}
}

// eventually asks until cond holds.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	limit := time.NewTimer(60 * time.Second)
	defer limit.Stop()
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	for !cond() {
		select {
		case <-limit.C:
			t.Fatalf("%s: it never came", what)
		case <-ticks.C:
		}
	}
}

func contains(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("got no error, want one with %q", parts)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("got error %q, want %q in it", err, p)
		}
	}
}
