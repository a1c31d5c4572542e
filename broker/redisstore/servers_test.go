package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/redisstore"
	"github.com/roomscaler/roomscaler/test/procs"
)

// walk begins a term, or finds one, and leads one room and one plan through it.
func walk(ctx context.Context, s *redisstore.Store) error {
	st, err := s.Begin(ctx)
	if err != nil {
		return err
	}
	if st.Phase == broker.Rebuilding {
		look := broker.LookReport{Instance: "janus-0", Address: "http://127.0.0.1:7088", Listed: true, Begin: st.Now, Incarnation: "life-0", Answered: true}
		if _, err := s.Record(ctx, st.Term, look); err != nil {
			return err
		}
		if _, err := s.Finish(ctx, st.Term, 0); err != nil {
			return err
		}
	}
	want, fresh, err := s.Claim(ctx, st.Term, broker.ClaimRequest{
		Room: "room", Expected: 2, Settings: "abc", Labels: map[string]string{"a": "b"}, Pick: broker.PickLeast,
		Candidates: []broker.Candidate{{Instance: "janus-0", Incarnation: "life-0"}},
	})
	if err != nil || !fresh {
		return fmt.Errorf("claim: fresh %v, %w", fresh, err)
	}
	got, _, err := s.Lookup(ctx, "room", false)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		return fmt.Errorf("lookup: %w\n%s", err, diff)
	}
	if _, err = s.Confirm(ctx, st.Term, "room", want.Epoch); err != nil {
		return err
	}
	f, err := s.Facts(ctx)
	if err != nil {
		return err
	}
	plan, err := s.PutPlan(ctx, st.Term, broker.PlanUpdate{IfVersion: f.Plan.Version, Desired: f.Plan.Desired + 1, Body: []byte("{}\x00\x1f")})
	if err != nil || plan.Version != f.Plan.Version+1 || string(plan.Body) != "{}\x00\x1f" {
		return fmt.Errorf("plan %+v: %w", plan, err)
	}
	_, err = s.End(ctx, st.Term, broker.EndRequest{Room: "room", Epoch: want.Epoch, Cause: broker.CauseTeardown})
	return err
}

func walked(t *testing.T, s *redisstore.Store) {
	t.Helper()
	if err := walk(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

func lostBy(t *testing.T, s *redisstore.Store) {
	t.Helper()
	if _, err := s.State(t.Context()); !errors.Is(err, broker.ErrStoreLost) {
		t.Fatalf("State: got %v, want ErrStoreLost", err)
	}
	if _, err := s.Facts(t.Context()); !errors.Is(err, broker.ErrStoreLost) {
		t.Fatalf("Facts: got %v, want ErrStoreLost", err)
	}
	if _, _, err := s.Lookup(t.Context(), "nowhere", true); !errors.Is(err, broker.ErrStoreLost) {
		t.Fatalf("Lookup of no room: got %v, want ErrStoreLost", err)
	}
	walked(t, s)
}

// TestG6_History: what may have lost the last writes is never taken for the same store.
func TestG6_History(t *testing.T) {
	t.Run("a store that is emptied is lost", func(t *testing.T) {
		r := startRedis(t, procs.RedisOptions{})
		s := openURL(t, "redis://"+r.Addr(), options())
		walked(t, s)
		must(clientOf(t, r).FlushAll(t.Context()).Result())(t)
		lostBy(t, s)
	})
	t.Run("a restart from an older copy is lost, and what the copy holds stays", func(t *testing.T) {
		o := procs.RedisOptions{Dir: t.TempDir(), Snapshot: true}
		r := startRedis(t, o)
		s := openURL(t, "redis://"+r.Addr(), options())
		walked(t, s)
		must(clientOf(t, r).Save(t.Context()).Result())(t)
		before := must(s.State(t.Context()))(t)
		walked(t, s)
		restart := r.Options()
		r.Kill()
		startRedis(t, restart)
		if _, err := s.Confirm(t.Context(), before.Term, "room", 1); !errors.Is(err, broker.ErrStoreLost) {
			t.Fatalf("Confirm: got %v, want ErrStoreLost", err)
		}
		lostBy(t, s)
		f := must(s.Facts(t.Context()))(t)
		if len(f.Instances) != 1 || f.Term == before.Term || f.Plan.Version != 1 {
			t.Errorf("got %+v, want the copy's instance, another term and a plan of this term", f)
		}
	})
	t.Run("a restart without files is lost", func(t *testing.T) {
		r := startRedis(t, procs.RedisOptions{Dir: t.TempDir()})
		s := openURL(t, "redis://"+r.Addr(), options())
		walked(t, s)
		restart := r.Options()
		r.Kill()
		startRedis(t, restart)
		lostBy(t, s)
	})
	t.Run("a store without a term tells no history", func(t *testing.T) {
		s := openURL(t, "redis://"+startRedis(t, procs.RedisOptions{}).Addr(), options())
		lostBy(t, s)
	})
}

func TestG6_Sentinel(t *testing.T) {
	master := startRedis(t, procs.RedisOptions{Password: "secret"})
	replicaOf := func() *procs.Redis {
		ip, port, _ := strings.Cut(master.Addr(), ":")
		return startRedis(t, procs.RedisOptions{Password: "secret", Config: []string{"replicaof " + ip + " " + port, "masterauth secret"}})
	}
	replica := replicaOf()
	sentinel := startRedis(t, procs.RedisOptions{Sentinel: true, Config: []string{
		"sentinel monitor rooms " + strings.Replace(master.Addr(), ":", " ", 1) + " 1",
		"sentinel auth-pass rooms secret",
		"sentinel down-after-milliseconds rooms 500",
		"sentinel failover-timeout rooms 5000",
	}})
	watch := redis.NewSentinelClient(&redis.Options{Addr: sentinel.Addr(), Protocol: 2})
	defer watch.Close()
	eventually(t, "the Sentinel knows the replica", func() bool {
		l, err := watch.Replicas(t.Context(), "rooms").Result()
		return err == nil && len(l) == 1
	})
	mine := redis.NewClient(&redis.Options{Addr: replica.Addr(), Password: "secret", Protocol: 2})
	defer mine.Close()
	eventually(t, "the replica is in step", func() bool {
		info, err := mine.Info(t.Context(), "replication").Result()
		return err == nil && strings.Contains(info, "master_link_status:up")
	})

	s := openURL(t, "redis+sentinel://:secret@"+sentinel.Addr()+"/0?master=rooms", options())
	walked(t, s)
	before := must(s.State(t.Context()))(t)

	master.Kill()
	var err error
	eventually(t, "the replica answers as master", func() bool {
		_, err = s.State(t.Context())
		return !errors.Is(err, broker.ErrStoreUnavailable)
	})
	if !errors.Is(err, broker.ErrStoreLost) {
		t.Fatalf("after the fail-over: got %v, want ErrStoreLost", err)
	}
	if _, err := s.Confirm(t.Context(), before.Term, "room", 1); !errors.Is(err, broker.ErrStoreLost) {
		t.Fatalf("Confirm: got %v, want ErrStoreLost", err)
	}
	lostBy(t, s)
}

func TestCluster(t *testing.T) {
	var nodes []*procs.Redis
	var addrs []string
	for range 3 {
		r := startRedis(t, procs.RedisOptions{Config: []string{"cluster-enabled yes", "cluster-node-timeout 5000"}})
		nodes, addrs = append(nodes, r), append(addrs, r.Addr())
	}
	for i, r := range nodes {
		c := clientOf(t, r)
		from, to := i*16384/3, (i+1)*16384/3-1
		must(c.ClusterAddSlotsRange(t.Context(), from, to).Result())(t)
		must(c.Do(t.Context(), "CLUSTER", "SET-CONFIG-EPOCH", i+1).Result())(t)
		ip, port, _ := strings.Cut(addrs[0], ":")
		must(c.ClusterMeet(t.Context(), ip, port).Result())(t)
	}
	for _, r := range nodes {
		c := clientOf(t, r)
		eventually(t, "the cluster is whole", func() bool {
			info, err := c.ClusterInfo(t.Context()).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3")
		})
	}
	url := "redis+cluster://" + strings.Join(addrs, ",")
	used := map[string]bool{}
	for i := 0; len(used) < 3; i++ {
		s := openURL(t, url, options())
		walked(t, s)
		for _, r := range nodes {
			if n := must(clientOf(t, r).DBSize(t.Context()).Result())(t); n > 0 {
				used[r.Addr()] = true
			}
		}
		if i == 50 {
			t.Fatalf("50 pools are on %d of 3 nodes", len(used))
		}
	}
	t.Run("a pool whose slot is being moved is refused, not halved", func(t *testing.T) {
		o := options()
		s, term := held(t, url, o)
		move(t, nodes, "roomscaler:{"+o.Pool+"}:instances")
		_, err := s.Mark(t.Context(), term, "janus-0", broker.MarkRequest{Owner: broker.OwnerHook})
		away(t, "Mark with one of the keys elsewhere", err, "TRYAGAIN", "is being moved")
		if _, _, err = s.Lookup(t.Context(), "kept", false); err != nil {
			t.Errorf("Lookup, whose keys are all there: got %v, want the pin", err)
		}
	})
	t.Run("a form that does not suit the server is told", func(t *testing.T) {
		var errs []error
		for _, r := range nodes {
			o := options()
			o.Pool = "one"
			_, err := openURL(t, "redis://"+r.Addr(), o).State(t.Context())
			errs = append(errs, err)
		}
		contains(t, errors.Join(errs...), "write redis+cluster")
		single := startRedis(t, procs.RedisOptions{})
		_, err := openURL(t, "redis+cluster://"+single.Addr(), options()).State(t.Context())
		away(t, "State", err, "write redis in")
	})
}

// move begins to move a pool's slot to another node and moves one key.
func move(t *testing.T, nodes []*procs.Redis, key string) {
	t.Helper()
	ctx := t.Context()
	slot := must(clientOf(t, nodes[0]).ClusterKeySlot(ctx, key).Result())(t)
	from := int(slot) * 3 / 16384
	for slot > int64((from+1)*16384/3-1) {
		from++
	}
	to := (from + 1) % 3
	ids := make([]string, 3)
	for i, r := range nodes {
		ids[i] = must(clientOf(t, r).ClusterMyID(ctx).Result())(t)
	}
	source, target := clientOf(t, nodes[from]), clientOf(t, nodes[to])
	must(target.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[from]).Result())(t)
	must(source.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[to]).Result())(t)
	ip, port, _ := strings.Cut(nodes[to].Addr(), ":")
	must(source.Migrate(ctx, ip, port, key, 0, 5*time.Second).Result())(t)
}

func TestOpen_TLS(t *testing.T) {
	dir := t.TempDir()
	ca, cert, key := certificates(t, dir)
	r := startTLS(t, dir, ca, cert, key)
	s := openURL(t, "rediss://:se%40cret@"+r+"?ca="+ca, options())
	walked(t, s)
	untrusted := openURL(t, "rediss://:se%40cret@"+r, options())
	_, err := untrusted.State(t.Context())
	contains(t, err, "certificate")
}

// startTLS starts a Redis that speaks TLS alone and returns its address.
func startTLS(t *testing.T, dir, ca, cert, key string) string {
	t.Helper()
	for range 5 {
		port := freePort(t)
		r := startRedis(t, procs.RedisOptions{Password: "se@cret", Config: []string{
			fmt.Sprintf("tls-port %d", port), "tls-cert-file " + cert, "tls-key-file " + key, "tls-ca-cert-file " + ca, "tls-auth-clients no",
		}})
		select {
		case <-r.Ended():
			continue
		default:
			return fmt.Sprintf("127.0.0.1:%d", port)
		}
	}
	t.Fatal("no port for TLS")
	return ""
}

func write(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
