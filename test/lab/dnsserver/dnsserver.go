// Package dnsserver answers for one headless Service as a cluster's DNS does with publishNotReadyAddresses: SRV records
// that name every pod, A records of the pods, nothing else.
package dnsserver

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// ttl of every answer, in seconds: nothing is to be remembered.
const ttl = 0

// smallest is the size of a UDP answer to whoever does not say that more will do.
const smallest = 512

// Endpoint is one pod of the service.
type Endpoint struct {
	Host string // first label of its name
	IP   netip.Addr
	Port uint16
}

// Server is a DNS server on loopback, over UDP and TCP.
type Server struct {
	service string
	list    func() []Endpoint
	udp     net.PacketConn
	tcp     net.Listener
	wg      sync.WaitGroup
	mu      sync.Mutex
	conns   map[net.Conn]struct{}
	closed  bool
}

// Listen serves the service's name (without a final dot) at a free port of 127.0.0.1. list is asked at
// each query.
func Listen(ctx context.Context, service string, list func() []Endpoint) (*Server, error) {
	var lc net.ListenConfig
	for range 20 { // the port must be free twice
		tcp, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("listening for DNS: %w", err)
		}
		udp, err := lc.ListenPacket(ctx, "udp", tcp.Addr().String())
		if err != nil {
			tcp.Close()
			continue
		}
		s := &Server{service: strings.ToLower(service) + ".", list: list, udp: udp, tcp: tcp, conns: map[net.Conn]struct{}{}}
		s.wg.Go(s.serveUDP)
		s.wg.Go(s.serveTCP)
		return s, nil
	}
	return nil, errors.New("listening for DNS: no port is free for both UDP and TCP")
}

// Addr is where the server listens, host:port.
func (s *Server) Addr() string { return s.tcp.Addr().String() }

// Close ends the server and waits for it.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	err := errors.Join(s.udp.Close(), s.tcp.Close())
	s.wg.Wait()
	return err
}

func (s *Server) serveUDP() {
	buf := make([]byte, 4096)
	for {
		n, from, err := s.udp.ReadFrom(buf)
		if err != nil {
			return
		}
		if reply := s.answer(buf[:n], true); reply != nil {
			if _, err := s.udp.WriteTo(reply, from); err != nil && errors.Is(err, net.ErrClosed) {
				return
			}
		}
	}
}

func (s *Server) serveTCP() {
	for {
		c, err := s.tcp.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			c.Close()
			return
		}
		s.conns[c] = struct{}{}
		s.mu.Unlock()
		s.wg.Go(func() {
			s.serveConn(c)
			c.Close()
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
		})
	}
}

func (s *Server) serveConn(c net.Conn) {
	for {
		if c.SetDeadline(time.Now().Add(10*time.Second)) != nil {
			return
		}
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		query := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, query); err != nil {
			return
		}
		reply := s.answer(query, false)
		if reply == nil {
			return
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}

// answer returns the reply to a query; nil to what is none.
func (s *Server) answer(query []byte, udp bool) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(query)
	if err != nil || h.Response {
		return nil
	}
	questions, err := p.AllQuestions()
	if err != nil || len(questions) != 1 {
		return nil
	}
	limit := smallest
	if !udp {
		limit = 1 << 16
	} else if n := advertised(&p); n > limit {
		limit = n
	}
	answers, extra, code := s.records(questions[0])
	reply, err := pack(h, code, questions[0], answers, extra, false)
	if err == nil && len(reply) > limit {
		reply, err = pack(h, code, questions[0], nil, nil, true)
	}
	if err != nil {
		return nil
	}
	return reply
}

// advertised is the size of UDP answers that the query allows (EDNS0), 0 if it does not say.
func advertised(p *dnsmessage.Parser) int {
	if p.SkipAllAnswers() != nil || p.SkipAllAuthorities() != nil {
		return 0
	}
	for {
		h, err := p.AdditionalHeader()
		if err != nil {
			return 0
		}
		if h.Type == dnsmessage.TypeOPT {
			return min(int(h.Class), 4096)
		}
		if p.SkipAdditional() != nil {
			return 0
		}
	}
}

func (s *Server) records(q dnsmessage.Question) (answers, extra []dnsmessage.Resource, code dnsmessage.RCode) {
	name := strings.ToLower(q.Name.String())
	rest, ok := strings.CutSuffix(name, s.service)
	if !ok || q.Class != dnsmessage.ClassINET {
		return nil, nil, dnsmessage.RCodeNameError
	}
	list := s.list()
	// The service itself, also as _port._protocol.
	if rest == "" || strings.HasPrefix(rest, "_") {
		for _, e := range list {
			host, err := dnsmessage.NewName(e.Host + "." + s.service)
			if err != nil {
				continue
			}
			a := resource(host, &dnsmessage.AResource{A: e.IP.As4()}, dnsmessage.TypeA)
			switch q.Type {
			case dnsmessage.TypeSRV:
				answers = append(answers, resource(q.Name, &dnsmessage.SRVResource{Weight: 1, Port: e.Port, Target: host}, dnsmessage.TypeSRV))
				extra = append(extra, a)
			case dnsmessage.TypeA:
				a.Header.Name = q.Name
				answers = append(answers, a)
			}
		}
		if len(list) == 0 {
			code = dnsmessage.RCodeNameError // as a cluster's DNS says of a service without endpoints
		}
		return answers, extra, code
	}
	for _, e := range list {
		if rest == e.Host+"." {
			if q.Type == dnsmessage.TypeA {
				answers = append(answers, resource(q.Name, &dnsmessage.AResource{A: e.IP.As4()}, dnsmessage.TypeA))
			}
			return answers, nil, dnsmessage.RCodeSuccess
		}
	}
	return nil, nil, dnsmessage.RCodeNameError
}

func resource(name dnsmessage.Name, body dnsmessage.ResourceBody, t dnsmessage.Type) dnsmessage.Resource {
	return dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: name, Type: t, Class: dnsmessage.ClassINET, TTL: ttl}, Body: body}
}

func pack(h dnsmessage.Header, code dnsmessage.RCode, q dnsmessage.Question, answers, extra []dnsmessage.Resource, cut bool) ([]byte, error) {
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: h.ID, Response: true, Authoritative: true, RecursionDesired: h.RecursionDesired, RCode: code, Truncated: cut},
		Questions: []dnsmessage.Question{q}, Answers: answers, Additionals: extra,
	}
	return m.Pack()
}
