package adapter_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/roomscaler/roomscaler/test/lab/dnsserver"
	"github.com/roomscaler/roomscaler/test/lab/simjanus"
	"github.com/roomscaler/roomscaler/test/procs"
)

const (
	adminSecret = "adapter-admin-secret"
	service     = "janus.media.svc.cluster.local"
	workload    = "janus"
)

// media runs a simulated media server for each pod, and tells of them by DNS as a headless Service does.
type media struct {
	t       *testing.T
	port    int
	dns     *dnsserver.Server
	roomsOn func(ctx context.Context, instance string) ([]string, error)

	mu      sync.Mutex
	servers map[string]*server // by pod
	lost    []string           // what was on pods when they were removed
}

type server struct {
	ip    netip.Addr
	janus *simjanus.Server
	http  *http.Server
}

func newMedia(t *testing.T, roomsOn func(context.Context, string) ([]string, error)) *media {
	t.Helper()
	m := &media{t: t, port: freePort(t), roomsOn: roomsOn, servers: map[string]*server{}}
	var err error
	if m.dns, err = dnsserver.Listen(t.Context(), service, m.endpoints); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.run(nil)
		if err := m.dns.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func freePort(t *testing.T) int {
	t.Helper()
	n, err := procs.FreePort("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// discover is what a broker is told of them.
func (m *media) discover() string {
	return fmt.Sprintf("dns:%s:%d?resolver=%s", service, m.port, m.dns.Addr())
}

func (m *media) endpoints() []dnsserver.Endpoint {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []dnsserver.Endpoint
	for name, s := range m.servers {
		out = append(out, dnsserver.Endpoint{Host: name, IP: s.ip, Port: uint16(m.port)})
	}
	return out
}

// run makes the servers be those of the pods.
func (m *media) run(pods []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, s := range m.servers {
		if !slices.Contains(pods, name) {
			m.stop(name, s)
		}
	}
	for _, name := range pods {
		if m.servers[name] == nil {
			m.start(name)
		}
	}
}

func (m *media) start(pod string) {
	var ordinal byte
	if _, err := fmt.Sscanf(pod, workload+"-%d", &ordinal); err != nil {
		m.t.Errorf("pod %s: %v", pod, err)
		return
	}
	s := &server{ip: netip.AddrFrom4([4]byte{127, 0, 91, ordinal + 1})}
	l, err := net.Listen("tcp", netip.AddrPortFrom(s.ip, uint16(m.port)).String())
	if err != nil {
		m.t.Errorf("pod %s: %v", pod, err)
		return
	}
	s.janus = simjanus.New(simjanus.Config{Name: pod, AdminSecret: adminSecret})
	s.http = &http.Server{Handler: s.janus.Admin(), ReadHeaderTimeout: 10 * time.Second}
	go s.http.Serve(l)
	m.servers[pod] = s
}

// stop ends a server, and notes what the broker had on it.
func (m *media) stop(pod string, s *server) {
	delete(m.servers, pod)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	// Without a broker the test is over, or about to be: nothing is said of rooms then.
	if rooms, err := m.roomsOn(ctx, pod); err == nil && len(rooms) > 0 {
		m.lost = append(m.lost, fmt.Sprintf("%s: %v", pod, rooms))
	}
	s.http.Close()
	s.janus.Close()
}

// cut returns what was on pods when they were removed.
func (m *media) cut() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.lost)
}
