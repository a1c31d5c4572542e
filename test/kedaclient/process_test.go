package kedaclient

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

// binary is the program under test; TestMain builds it.
var binary string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	logf.SetLogger(logr.Discard()) // else KEDA's side prints a warning
	dir, err := os.MkdirTemp("", "kedaclient")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "roomscaler")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "./cmd/roomscaler")
	build.Dir, build.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building roomscaler: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// server is a `roomscaler scaler` that KEDA reaches through a relay, so that it keeps its address over a restart and its
// connections can be counted.
type server struct {
	t           *testing.T
	args        []string
	address     string // of the relay
	connections atomic.Int32

	mu     sync.Mutex
	behind string // where the process listens; "": nowhere
	signal func(os.Signal) error
	stop   func() // waits for its end; nil: none runs
}

func newServer(t *testing.T, b *broker, args ...string) *server {
	t.Helper()
	s := &server{t: t, args: append([]string{"scaler", "--broker=" + b.url, "--listen=127.0.0.1:0", "--metrics-listen=off"}, args...)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	t.Cleanup(func() { l.Close(); s.end(os.Interrupt) })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.relay(c)
		}
	}()
	s.begin()
	return s
}

func (s *server) relay(c net.Conn) {
	defer c.Close()
	s.mu.Lock()
	behind := s.behind
	s.mu.Unlock()
	d, err := net.Dial("tcp", behind)
	if err != nil {
		return
	}
	defer d.Close()
	s.connections.Add(1)
	go func() {
		_, _ = io.Copy(d, c)
		_ = d.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(c, d)
}

// begin starts the process and returns when it listens.
func (s *server) begin() {
	s.t.Helper()
	p := exec.Command(binary, s.args...)
	log, err := p.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewScanner(log)
	address := ""
	for address == "" && lines.Scan() {
		var line struct{ Msg, Component, Address string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Component == "scaler" && line.Msg == "listening" {
			address = line.Address
		}
	}
	if address == "" {
		_ = p.Process.Kill()
		_ = p.Wait()
		s.t.Fatalf("%v does not listen", s.args)
	}
	read := make(chan struct{})
	go func() { defer close(read); _, _ = io.Copy(io.Discard, log) }()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind = address
	s.stop = sync.OnceFunc(func() { <-read; _ = p.Wait() })
	s.signal = p.Process.Signal
}

// end stops the process and waits for it.
func (s *server) end(sig os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop == nil {
		return
	}
	_ = s.signal(sig)
	s.stop()
	s.stop = nil
}

// eventually asks until it is so.
func eventually(t *testing.T, what string, so func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for {
		err := so(ctx)
		if err == nil {
			return
		}
		select {
		case <-ticks.C:
		case <-ctx.Done():
			t.Fatalf("not so: %s: %v", what, err)
		}
	}
}
