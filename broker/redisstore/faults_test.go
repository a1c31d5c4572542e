package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/redisstore"
	"github.com/roomscaler/roomscaler/test/procs"
)

func away(t *testing.T, what string, err error, parts ...string) {
	t.Helper()
	if !errors.Is(err, broker.ErrStoreUnavailable) || errors.Is(err, redis.Nil) {
		t.Fatalf("%s: got %v, want ErrStoreUnavailable", what, err)
	}
	contains(t, err, parts...)
}

// held is a store whose room "kept" is pinned.
func held(t *testing.T, url string, o redisstore.Options) (*redisstore.Store, broker.Term) {
	t.Helper()
	s := openURL(t, url, o)
	walked(t, s)
	st := must(s.State(t.Context()))(t)
	_, _, err := s.Claim(t.Context(), st.Term, broker.ClaimRequest{Room: "kept", Candidates: []broker.Candidate{{Instance: "janus-0", Incarnation: "life-0"}}})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the clock goes on", func() bool { return must(s.State(t.Context()))(t).Now > st.Now+1 })
	return s, st.Term
}

func TestUnavailable(t *testing.T) {
	ctx := t.Context()
	r := startRedis(t, procs.RedisOptions{})
	client := clientOf(t, r)
	config := func(t *testing.T, key, value, after string) {
		t.Helper()
		must(client.ConfigSet(ctx, key, value).Result())(t)
		t.Cleanup(func() { must(client.ConfigSet(context.WithoutCancel(ctx), key, after).Result())(t) })
	}
	t.Run("a master without its replicas changes, decides and tells nothing of the plan, but finds rooms", func(t *testing.T) {
		s, term := held(t, "redis://"+r.Addr(), options())
		config(t, "min-replicas-to-write", "1", "0")
		_, err := s.State(ctx)
		away(t, "State", err, "NOREPLICAS", "min-replicas-to-write")
		_, err = s.Facts(ctx)
		away(t, "Facts", err, "NOREPLICAS")
		_, err = s.PutPlan(ctx, term, broker.PlanUpdate{IfVersion: 1, Desired: 9})
		away(t, "PutPlan", err, "NOREPLICAS")
		if _, _, err := s.Lookup(ctx, "kept", true); err != nil {
			t.Errorf("Lookup: got %v, want the pin", err)
		}
		if pins, err := s.Pins(ctx, "janus-0", "", 0); err != nil || len(pins) != 1 {
			t.Errorf("Pins: got %v, %v; want the pin", pins, err)
		}
	})
	t.Run("full memory refuses claims, but finds rooms", func(t *testing.T) {
		s, term := held(t, "redis://"+r.Addr(), options())
		config(t, "maxmemory", "1", "0")
		_, _, err := s.Claim(ctx, term, broker.ClaimRequest{Room: "more"})
		away(t, "Claim", err, "OOM", "raise maxmemory")
		if _, _, err := s.Lookup(ctx, "kept", true); err != nil {
			t.Errorf("Lookup: got %v, want the pin", err)
		}
	})
	t.Run("a replica's old data is no answer", func(t *testing.T) {
		s, term := held(t, "redis://"+r.Addr(), options())
		must(client.Do(ctx, "REPLICAOF", "127.0.0.1", "1").Result())(t)
		t.Cleanup(func() { must(client.Do(context.WithoutCancel(ctx), "REPLICAOF", "NO", "ONE").Result())(t) })
		_, _, err := s.Lookup(ctx, "kept", false)
		away(t, "Lookup", err, "READONLY")
		_, err = s.Confirm(ctx, term, "kept", 1)
		if !errors.Is(err, broker.ErrStoreUnavailable) && !errors.Is(err, broker.ErrStoreLost) {
			t.Errorf("Confirm: got %v, want a refusal", err)
		}
	})
	t.Run("a server that hangs is given up in time, and a context that ends is kept", func(t *testing.T) {
		o := options()
		o.Timeout = 50 * time.Millisecond
		s, term := held(t, "redis://"+r.Addr(), o)
		r.Pause()
		defer r.Continue()
		_, err := s.Confirm(ctx, term, "kept", 1)
		away(t, "Confirm", err, `confirm room "kept"`)
		short, cancel := context.WithCancel(ctx)
		cancel()
		_, _, err = s.Lookup(short, "kept", false)
		away(t, "Lookup", err)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Lookup: got %v, want context.Canceled in it", err)
		}
	})
	t.Run("nobody listens", func(t *testing.T) {
		s := openURL(t, "redis://:hidden@127.0.0.1:1", options())
		_, err := s.State(ctx)
		away(t, "State", err, "refused")
		_, err = openURL(t, "redis+cluster://:hidden@127.0.0.1:1", options()).State(ctx)
		away(t, "State of a cluster", err, "refused")
		_, err = openURL(t, "redis+sentinel://:hidden@127.0.0.1:1?master=x", options()).State(ctx)
		away(t, "State by Sentinels", err)
	})
	t.Run("a closed store", func(t *testing.T) {
		s := openURL(t, "redis://"+r.Addr(), options())
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := s.State(ctx)
		away(t, "State", err)
	})
	t.Run("keys of another form", func(t *testing.T) {
		o := options()
		s, _ := held(t, "redis://"+r.Addr(), o)
		must(client.HSet(ctx, "roomscaler:{"+o.Pool+"}:pins", "kept", "{}").Result())(t)
		_, _, err := s.Lookup(ctx, "kept", false)
		away(t, "Lookup", err, "of another form")
	})
}

func TestRights(t *testing.T) {
	ctx := t.Context()
	r := startRedis(t, procs.RedisOptions{})
	client := clientOf(t, r)
	allow := func(t *testing.T, user string, rules ...string) *redisstore.Store {
		t.Helper()
		o := options()
		args := []any{"ACL", "SETUSER", user, "reset", "on", ">pass", "~roomscaler:{" + o.Pool + "}:*"}
		for _, rule := range append(rules, "+hello", "+ping", "+auth", "+select") {
			args = append(args, rule)
		}
		must(client.Do(ctx, args...).Result())(t)
		return openURL(t, "redis://"+user+":pass@"+r.Addr(), o)
	}
	var all []string
	for _, c := range strings.Fields(redisstore.Commands) {
		all = append(all, "+"+c)
	}
	t.Run("the commands named are enough", func(t *testing.T) {
		s := allow(t, "full", all...)
		walked(t, s)
		st := must(s.State(ctx))(t)
		if _, err := s.Lost(ctx, st.Term, "janus-0", "life-0"); err != nil {
			t.Error(err)
		}
		if err := s.Forget(ctx, st.Term, "janus-0"); err != nil {
			t.Error(err)
		}
		if err := s.Assert(ctx, st.Term, broker.Assertion{Floor: 1}); err != nil {
			t.Error(err)
		}
		if _, err := s.Pins(ctx, "", "", 0); err != nil {
			t.Error(err)
		}
		if _, err := s.Tombstones(ctx, "janus-0"); err != nil {
			t.Error(err)
		}
	})
	t.Run("without INFO the remedy is told", func(t *testing.T) {
		_, err := allow(t, "noinfo", append(all, "-info")...).Begin(ctx)
		away(t, "Begin", err, "+info")
	})
	t.Run("without another command the remedy is told", func(t *testing.T) {
		_, err := allow(t, "notime", append(all, "-time")...).Begin(ctx)
		away(t, "Begin", err, "ACL SETUSER")
	})
	t.Run("without scripts the remedy is told", func(t *testing.T) {
		_, err := allow(t, "noeval", append(all, "-evalsha", "-eval")...).Begin(ctx)
		away(t, "Begin", err, "ACL SETUSER")
	})
	t.Run("a wrong password is told without it", func(t *testing.T) {
		_, err := openURL(t, "redis://full:hidden-word@"+r.Addr(), options()).Begin(ctx)
		away(t, "Begin", err, "WRONGPASS", "store's URL")
		if strings.Contains(err.Error(), "hidden-word") {
			t.Errorf("got %q with the password", err)
		}
	})
}
