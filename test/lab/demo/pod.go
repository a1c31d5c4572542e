package demo

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roomscaler/roomscaler/test/lab/dnsserver"
	"github.com/roomscaler/roomscaler/test/lab/supervisor"
	"github.com/roomscaler/roomscaler/test/procs"
)

// pods makes the pods of one pool: each has an IP of its own and the same ports.
type pods struct {
	tools     tools
	dir       string
	block     byte // third byte of the pods' addresses
	adminPort int
	httpPort  int
}

func newPods(t tools, dir string, block byte) (*pods, error) {
	p := &pods{tools: t, dir: dir, block: block}
	for _, port := range []*int{&p.adminPort, &p.httpPort} {
		n, err := procs.FreePort(p.ip(0).String())
		if err != nil {
			return nil, err
		}
		*port = n
	}
	return p, nil
}

func name(ordinal int) string { return "janus-" + strconv.Itoa(ordinal) }

func (p *pods) ip(ordinal int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, 0, p.block, byte(ordinal + 1)})
}

func (p *pods) adminURL(ordinal int) string {
	return fmt.Sprintf("http://%s:%d/admin", p.ip(ordinal), p.adminPort)
}

// endpoints are what DNS says of these pods.
func (p *pods) endpoints(list []supervisor.Pod) []dnsserver.Endpoint {
	var out []dnsserver.Endpoint
	for _, pod := range list {
		out = append(out, dnsserver.Endpoint{Host: name(pod.Ordinal), IP: p.ip(pod.Ordinal), Port: uint16(p.adminPort)})
	}
	return out
}

const startTimeout = 30 * time.Second

// start is supervisor.Config.Start.
func (p *pods) start(ctx context.Context, pod supervisor.Pod) (supervisor.Process, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	// Each start has a folder of its own: procs reads the log to see whether the start went well.
	dir := filepath.Join(p.dir, fmt.Sprintf("%s.%d.%d", name(pod.Ordinal), pod.Life, pod.Restarts))
	if p.tools.media == Simulated {
		return p.startSimulated(ctx, pod, dir)
	}
	return p.startJanus(ctx, pod, dir)
}

func (p *pods) startJanus(ctx context.Context, pod supervisor.Pod, dir string) (supervisor.Process, error) {
	j, err := procs.StartJanus(ctx, procs.JanusOptions{Name: name(pod.Ordinal), Dir: dir, AdminSecret: adminSecret, AdminKey: adminKey})
	if err != nil {
		return nil, err
	}
	c := &janus{Janus: j, done: make(chan struct{})}
	ip, o := p.ip(pod.Ordinal).String(), j.Options()
	for from, to := range map[int]int{p.adminPort: o.AdminPort, p.httpPort: o.HTTPPort} {
		r, err := startRelay(ctx, net.JoinHostPort(ip, strconv.Itoa(from)), net.JoinHostPort(o.IP, strconv.Itoa(to)))
		if err != nil {
			j.Kill()
			c.end()
			return nil, err
		}
		c.relays = append(c.relays, r)
	}
	go func() {
		<-j.Ended()
		c.end()
	}()
	return c, nil
}

// janus is a supervisor.Process: a Janus and the relays to it. It has ended when all have.
type janus struct {
	*procs.Janus
	relays []*relay
	done   chan struct{}
}

func (j *janus) end() {
	for _, r := range j.relays {
		r.close()
	}
	close(j.done)
}

// Terminate lets Stop do no more than send SIGTERM: the supervisor kills by its own clock.
func (j *janus) Terminate() error {
	go j.Stop(2 * podGrace)
	return nil
}

func (j *janus) Kill() error {
	j.Janus.Kill()
	return nil
}

func (j *janus) Done() <-chan struct{} { return j.done }

func (p *pods) startSimulated(ctx context.Context, pod supervisor.Pod, dir string) (supervisor.Process, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making a pod's folder: %w", err)
	}
	ip := p.ip(pod.Ordinal).String()
	c, err := startLogged(filepath.Join(dir, "simjanus.log"), p.tools.self, "simjanus", "--name", name(pod.Ordinal), "--ip", ip,
		"--admin-port", strconv.Itoa(p.adminPort), "--http-port", strconv.Itoa(p.httpPort), "--admin-secret", adminSecret, "--admin-key", adminKey)
	if err != nil {
		return nil, err
	}
	if err := await(ctx, c, p.adminURL(pod.Ordinal)+"/info"); err != nil {
		c.Kill()
		<-c.Done()
		return nil, err
	}
	return c, nil
}

// startLogged starts a program of ours whose output goes to a file.
func startLogged(log, program string, args ...string) (*supervisor.Command, error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening a log: %w", err)
	}
	defer f.Close() // the program has its own
	// What the caller's shell sets for a roomscaler of its own is not meant for these.
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "ROOMSCALER_") })
	return supervisor.StartCommand(f, env, program, args...)
}

// await polls url until it answers with 200, the program ends, or ctx does.
func await(ctx context.Context, c *supervisor.Command, url string) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := probe(ctx, url)
		if err == nil {
			return nil
		}
		select {
		case <-c.Done():
			return fmt.Errorf("it ended while starting: %w", c.Err())
		case <-ctx.Done():
			return fmt.Errorf("it does not become ready: %w", err)
		case <-tick.C:
		}
	}
}

func probe(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, err := io.ReadAll(io.LimitReader(resp.Body, 500))
		if err != nil {
			return err
		}
		return fmt.Errorf("%s answers %s: %s", url, resp.Status, b)
	}
	return nil
}
