package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/test/procs"
)

// TestG1_Brokers drives two brokers on one Redis and three Janus.
func TestG1_Brokers(t *testing.T) {
	redis, err := procs.StartRedis(t.Context(), procs.RedisOptions{})
	procs.Need(t, err)
	t.Cleanup(redis.Kill)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("adminsecret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	servers := map[string]*procs.Janus{}
	var list []string
	for i := range 3 {
		j, err := procs.StartJanus(t.Context(), procs.JanusOptions{AdminSecret: "adminsecret", AdminKey: "k"})
		procs.Need(t, err)
		t.Cleanup(j.Kill)
		name := fmt.Sprintf("janus-%d", i)
		servers[name] = j
		list = append(list, name+"="+j.AdminURL())
	}
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("k"), 0o600); err != nil {
		t.Fatal(err)
	}
	var clients []*brokerapi.Client
	for range 2 {
		p := start(t, []string{"api"}, "broker", "--pool=video", "--store=redis://"+redis.Addr(), "--discover=static:"+strings.Join(list, ","),
			"--listen=127.0.0.1:0", "--metrics-listen=off", "--janus-admin-secret-file="+secret, "--janus-admin-key-file="+key, "--sweep-interval=500ms")
		c, err := brokerapi.NewClient("http://"+p.address["api"], nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	for _, c := range clients {
		eventually(t, "all instances are ready", func() bool {
			l, err := c.Instances(t.Context(), "video")
			ready := 0
			for _, in := range l.Instances {
				if in.State == "ready" {
					ready++
				}
			}
			f, ferr := c.Facts(t.Context(), "video")
			return err == nil && ferr == nil && ready == 3 && f.Phase == brokerapi.PhaseReady
		})
	}

	t.Run("200 concurrent creates of one room make it once, in one place", func(t *testing.T) {
		var wg sync.WaitGroup
		var made atomic.Int32
		pins := make([]brokerapi.Pin, 200)
		for i := range pins {
			wg.Go(func() {
				p, fresh, err := clients[i%2].CreateRoom(t.Context(), "video", "one", brokerapi.CreateRoom{})
				if err != nil {
					t.Error(err)
				}
				if fresh {
					made.Add(1)
				}
				pins[i] = p
			})
		}
		wg.Wait()
		for _, p := range pins[1:] {
			if p.Instance != pins[0].Instance || p.Epoch != pins[0].Epoch || p.PIN != pins[0].PIN {
				t.Fatalf("two homes: %+v and %+v", pins[0], p)
			}
		}
		if n := made.Load(); n != 1 {
			t.Errorf("%d callers were told that they made it", n)
		}
		for name, j := range servers {
			if there := joinable(t, j, pins[0]); there != (name == pins[0].Instance) {
				t.Errorf("on %s: %v", name, there)
			}
		}
	})
	t.Run("a burst of 300 rooms is spread evenly", func(t *testing.T) {
		var wg sync.WaitGroup
		slots := make(chan struct{}, 50)
		for i := range 300 {
			wg.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				if _, _, err := clients[i%2].CreateRoom(t.Context(), "video", fmt.Sprintf("burst/%d", i), brokerapi.CreateRoom{}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		perInstance := map[string]int{}
		q := brokerapi.RoomsQuery{Limit: 70}
		total := 0
		for {
			page, err := clients[0].Rooms(t.Context(), "video", q)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range page.Rooms {
				perInstance[p.Instance]++
				total++
			}
			if q.Cursor = page.Cursor; q.Cursor == "" {
				break
			}
		}
		if total != 301 {
			t.Errorf("the pages list %d rooms", total)
		}
		for name, n := range perInstance {
			if float64(n) > 1.1*float64(total)/3 {
				t.Errorf("%s has %d of %d: %v", name, n, total, perInstance)
			}
		}
	})
}
