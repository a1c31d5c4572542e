package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/backendtest"
	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/broker/janus"
	"github.com/roomscaler/roomscaler/test/januscli"
	"github.com/roomscaler/roomscaler/test/procs"
)

const (
	adminSecret = "e2e-admin-secret"
	adminKey    = "e2e-admin-key"
	roomKey     = "e2e-room-key-0123456789"
	sweep       = 500 * time.Millisecond
	pool        = "default"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "roomscaler-e2e-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "roomscaler")
		out, err := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "../../cmd/roomscaler").CombinedOutput()
		if err != nil {
			fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// program is a running subcommand.
type program struct {
	t    *testing.T
	name string
	args []string
	cmd  *exec.Cmd
	log  *lockedBuffer
	done chan struct{}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start runs the program until the test ends; its log is shown if the test fails.
func start(t *testing.T, name string, args ...string) *program {
	t.Helper()
	p := &program{t: t, name: name, args: args, log: &lockedBuffer{}}
	p.launch()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			log := p.log.String()
			t.Logf("--- log of %s:\n%s", name, log[max(0, len(log)-6000):])
		}
	})
	return p
}

func (p *program) launch() {
	p.t.Helper()
	p.cmd = exec.Command(binary, p.args...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.done = make(chan struct{})
	go func(c *exec.Cmd, done chan struct{}) {
		_ = c.Wait()
		close(done)
	}(p.cmd, p.done)
}

// kill ends it with SIGKILL and waits for its end.
func (p *program) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// restart starts it again with the same arguments.
func (p *program) restart() {
	p.t.Helper()
	p.launch()
}

// node is a broker process and a client of its API.
type node struct {
	*program
	*brokerapi.Client
	url string
}

// cluster is a pool of real Janus servers with brokers on a real Redis.
type cluster struct {
	t       *testing.T
	ctx     context.Context
	janus   []*procs.Janus
	proxies []*backendtest.Faulty
	redis   *procs.Redis
	nodes   []*node
	backend *janus.Backend
	files   map[string]string
}

// newCluster starts n Janus behind fault proxies, a Redis and two brokers, and waits until they are ready.
func newCluster(t *testing.T, n int, redis procs.RedisOptions, flags ...string) *cluster {
	t.Helper()
	c := &cluster{t: t, ctx: t.Context(), files: map[string]string{}}
	for name, secret := range map[string]string{"admin-secret": adminSecret, "admin-key": adminKey, "room-key": roomKey} {
		c.files[name] = filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(c.files[name], []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.backend = janus.New(janus.Options{AdminSecret: adminSecret, AdminKey: adminKey, Key: broker.RoomKey(roomKey)})
	var list []string
	for i := range n {
		j, err := procs.StartJanus(c.ctx, procs.JanusOptions{Name: fmt.Sprintf("janus-%d", i), AdminSecret: adminSecret, AdminKey: adminKey, EventLoops: 2})
		procs.Need(t, err)
		t.Cleanup(j.Kill)
		p := backendtest.NewFaulty(t, j.AdminURL())
		c.janus, c.proxies = append(c.janus, j), append(c.proxies, p)
		list = append(list, fmt.Sprintf("janus-%d=%s", i, p.Address()))
	}
	var err error
	c.redis, err = procs.StartRedis(c.ctx, redis)
	procs.Need(t, err)
	t.Cleanup(func() { c.redis.Kill() })
	for i := range 2 {
		c.nodes = append(c.nodes, c.broker(fmt.Sprintf("broker-%d", i), "static:"+strings.Join(list, ","), flags...))
	}
	for _, b := range c.nodes {
		c.ready(b)
	}
	return c
}

// broker starts a broker process.
func (c *cluster) broker(name, discover string, flags ...string) *node {
	c.t.Helper()
	api, metrics := c.port(), c.port()
	p := start(c.t, name, append([]string{
		"broker", "--listen", api, "--metrics-listen", metrics, "--store", "redis://" + c.redis.Addr(), "--pool", pool,
		"--discover", discover, "--sweep-interval", sweep.String(), "--instance-timeout", "2s",
		"--janus-admin-secret-file", c.files["admin-secret"], "--janus-admin-key-file", c.files["admin-key"], "--room-key-file", c.files["room-key"],
	}, flags...)...)
	client, err := brokerapi.NewClient("http://"+api, nil, &http.Client{})
	if err != nil {
		c.t.Fatal(err)
	}
	return &node{p, client, "http://" + api}
}

func (c *cluster) port() string {
	c.t.Helper()
	n, err := procs.FreePort("127.0.0.1")
	if err != nil {
		c.t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", n)
}

// ready waits until a broker takes rooms.
func (c *cluster) ready(b *node) {
	c.t.Helper()
	c.eventually(20*time.Second, b.name+" is ready", func() error {
		f, err := b.Facts(c.ctx, pool)
		if err == nil && f.Phase != brokerapi.PhaseReady {
			err = errors.New(f.Phase)
		}
		if err != nil {
			return err
		}
		r, err := http.Get(b.url + "/readyz")
		if err != nil {
			return err
		}
		defer r.Body.Close()
		if r.StatusCode != http.StatusOK {
			return errors.New(r.Status)
		}
		return nil
	})
}

// eventually polls until fn returns nil.
func (c *cluster) eventually(limit time.Duration, what string, fn func() error) {
	c.t.Helper()
	eventually(c.t, limit, what, fn)
}

func eventually(t *testing.T, limit time.Duration, what string, fn func() error) {
	t.Helper()
	deadline := time.After(limit)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := fn()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: not within %v: %v", what, limit, err)
		}
	}
}

// creates makes every create of a room hang, before or after Janus has made it. The channel is
// sent to when one does; the function ends that.
func (c *cluster) creates(after bool) (hit <-chan struct{}, stop func()) {
	hits := make(chan struct{}, len(c.proxies))
	var all []*backendtest.Caused
	for _, p := range c.proxies {
		t := p.Cause(backendtest.Trouble{
			Match: func(_ string, body []byte) bool { return bytes.Contains(body, []byte(`"request":"create"`)) },
			After: after, Do: backendtest.Hang,
		})
		all = append(all, t)
		go func() {
			select {
			case <-t.Hit():
				hits <- struct{}{}
			case <-c.ctx.Done():
			}
		}()
	}
	return hits, func() {
		for _, t := range all {
			t.Stop()
		}
	}
}

// rooms returns all rooms of ours on all Janus, by name, each with the instances that have it.
func (c *cluster) rooms() map[string][]string {
	c.t.Helper()
	all := map[string][]string{}
	for i, j := range c.janus {
		name := fmt.Sprintf("janus-%d", i)
		l, err := c.backend.Look(c.ctx, broker.Target{Pool: pool, Instance: name, Address: j.AdminURL()}, broker.LookOptions{})
		if err != nil {
			c.t.Fatalf("look at %s: %v", name, err)
		}
		for _, r := range l.Rooms {
			all[r.Room] = append(all[r.Room], name)
		}
	}
	return all
}

// consistent reports the first room whose pin and place differ.
func (c *cluster) consistent() error {
	page, err := c.nodes[0].Rooms(c.ctx, pool, brokerapi.RoomsQuery{Limit: 1000})
	if err != nil {
		return err
	}
	there := c.rooms()
	for _, p := range page.Rooms {
		if got := there[p.Room]; len(got) != 1 || got[0] != p.Instance {
			return fmt.Errorf("%q is pinned to %s and stands on %v", p.Room, p.Instance, got)
		}
		delete(there, p.Room)
	}
	if len(there) > 0 {
		return fmt.Errorf("rooms without a pin: %v", there)
	}
	return nil
}

// call is a room with somebody in it.
type call struct {
	pin brokerapi.Pin
	*januscli.Session
}

// join makes a room and puts a person in it.
func (c *cluster) join(b *node, room string) *call {
	c.t.Helper()
	pin, _, err := b.CreateRoom(c.ctx, pool, room, brokerapi.CreateRoom{})
	if err != nil {
		c.t.Fatalf("create %q: %v", room, err)
	}
	var n int
	if _, err := fmt.Sscanf(pin.Instance, "janus-%d", &n); err != nil {
		c.t.Fatal(err)
	}
	s, err := januscli.Open(c.ctx, c.janus[n].HTTPURL(), januscli.Options{})
	if err != nil {
		c.t.Fatalf("open a session on %s: %v", pin.Instance, err)
	}
	if err := s.Join(c.ctx, json.RawMessage(pin.JanusRoom), pin.PIN); err != nil {
		c.t.Fatalf("join %q on %s: %v", room, pin.Instance, err)
	}
	return &call{pin, s}
}

// alive fails the test if any of the calls has been cut.
func (c *cluster) alive(calls []*call) {
	c.t.Helper()
	for _, k := range calls {
		if err := k.KeepAlive(c.ctx); err != nil {
			c.t.Errorf("the session in %q on %s was cut: %v", k.pin.Room, k.pin.Instance, err)
		}
	}
}

// problem returns the code of an API error.
func problem(err error) string {
	var p *brokerapi.Problem
	if errors.As(err, &p) {
		return p.Code
	}
	return ""
}
