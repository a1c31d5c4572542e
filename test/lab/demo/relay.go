package demo

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
)

// relay listens at a pod's address and passes connections on to where the pod's program really listens: Janus takes no
// address that no interface has, and only 127.0.0.1 of the whole loopback block is one.
type relay struct {
	to string
	l  net.Listener
	wg sync.WaitGroup

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
}

func startRelay(ctx context.Context, from, to string) (*relay, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", from)
	if err != nil {
		return nil, fmt.Errorf("listening for a pod: %w", err)
	}
	r := &relay{to: to, l: l, conns: map[net.Conn]struct{}{}}
	r.wg.Go(r.accept)
	return r, nil
}

// close ends all connections and waits.
func (r *relay) close() {
	r.l.Close()
	r.mu.Lock()
	r.closed = true
	for c := range r.conns {
		c.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

func (r *relay) accept() {
	for {
		c, err := r.l.Accept()
		if err != nil {
			return
		}
		r.wg.Go(func() { r.pass(c) })
	}
}

// pass ends both sides as soon as either ends.
func (r *relay) pass(in net.Conn) {
	defer in.Close()
	out, err := net.Dial("tcp", r.to)
	if err != nil { // nobody there: the caller shall see a reset
		if t, ok := in.(*net.TCPConn); ok {
			t.SetLinger(0)
		}
		return
	}
	defer out.Close()
	if !r.keep(in, out) {
		return
	}
	defer r.drop(in, out)
	var wg sync.WaitGroup
	wg.Go(func() { io.Copy(out, in); out.Close(); in.Close() })
	wg.Go(func() { io.Copy(in, out); out.Close(); in.Close() })
	wg.Wait()
}

func (r *relay) keep(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	for _, c := range conns {
		r.conns[c] = struct{}{}
	}
	return true
}

func (r *relay) drop(conns ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		delete(r.conns, c)
	}
}
