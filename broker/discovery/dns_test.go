package discovery_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/discovery"
)

const service = "janus.media.svc.cluster.local."

// zone is what a test's name server knows.
type zone struct {
	srv   map[string][]dnsmessage.SRVResource
	addrs map[string][]string
	rcode map[string]dnsmessage.RCode // of names that fail, or of "name TYPE"
	mute  bool
	tcp   atomic.Int32 // questions that came by TCP
}

func (z *zone) pod(name, addr string, port uint16) {
	target := name + "." + service
	z.srv[service] = append(z.srv[service], dnsmessage.SRVResource{Port: port, Weight: 1, Target: dnsmessage.MustNewName(target)})
	if addr != "" {
		z.addrs[target] = append(z.addrs[target], addr)
	}
}

// serve answers on loopback by UDP and TCP on one port.
func (z *zone) serve(t *testing.T) string {
	t.Helper()
	for range 20 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		p, err := net.ListenPacket("udp", l.Addr().String())
		if err != nil {
			l.Close() // another process has the UDP port
			continue
		}
		t.Cleanup(func() { l.Close(); p.Close() })
		go func() {
			buf := make([]byte, 64<<10)
			for {
				n, from, err := p.ReadFrom(buf)
				if err != nil {
					return
				}
				if reply := z.reply(buf[:n], 512); reply != nil {
					p.WriteTo(reply, from)
				}
			}
		}()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go z.stream(c)
			}
		}()
		return l.Addr().String()
	}
	t.Fatal("no port is free for both TCP and UDP")
	return ""
}

func (z *zone) stream(c net.Conn) {
	defer c.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		q := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, q); err != nil {
			return
		}
		z.tcp.Add(1)
		reply := z.reply(q, 65535)
		if reply == nil {
			return
		}
		c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
	}
}

func (z *zone) reply(query []byte, limit int) []byte {
	var m dnsmessage.Message
	if m.Unpack(query) != nil || z.mute {
		return nil
	}
	q := m.Questions[0]
	name := strings.ToLower(q.Name.String())
	out := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true, RCode: z.rcode[name]}, Questions: m.Questions}
	if c, ok := z.rcode[name+" "+q.Type.String()]; ok {
		out.RCode = c
	}
	head := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 5}
	_, isService := z.srv[name]
	_, isHost := z.addrs[name]
	switch {
	case out.RCode != 0:
	case !isService && !isHost:
		out.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeSRV:
		for _, r := range z.srv[name] {
			out.Answers = append(out.Answers, dnsmessage.Resource{Header: head, Body: &r})
		}
	default:
		for _, a := range z.addrs[name] {
			ip := netip.MustParseAddr(a)
			if ip.Is4() && q.Type == dnsmessage.TypeA {
				out.Answers = append(out.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: ip.As4()}})
			} else if ip.Is6() && q.Type == dnsmessage.TypeAAAA {
				out.Answers = append(out.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}})
			}
		}
	}
	b, err := out.Pack()
	if err != nil {
		panic(err)
	}
	if len(b) > limit {
		out.Answers, out.Truncated = nil, true
		if b, err = out.Pack(); err != nil {
			panic(err)
		}
	}
	return b
}

func newZone() *zone {
	return &zone{srv: map[string][]dnsmessage.SRVResource{}, addrs: map[string][]string{}, rcode: map[string]dnsmessage.RCode{}}
}

func find(t *testing.T, z *zone, port, params string) ([]broker.Found, error) {
	t.Helper()
	d, err := discovery.ParseDNS(service + ":" + port + "?resolver=" + z.serve(t) + params)
	if err != nil {
		t.Fatal(err)
	}
	return d.Find(t.Context())
}

func TestDNS(t *testing.T) {
	t.Run("each pod of the service is an instance, by ordinal", func(t *testing.T) {
		z := newZone()
		z.pod("janus-10", "10.0.0.10", 1)
		z.pod("JANUS-2", "10.0.0.2", 1)
		z.addrs[strings.ToLower("JANUS-2."+service)] = []string{"10.0.0.2"}
		got, err := find(t, z, "7088", "")
		want := []broker.Found{{Name: "janus-2", Ordinal: 2, Address: "http://10.0.0.2:7088/admin"}, {Name: "janus-10", Ordinal: 10, Address: "http://10.0.0.10:7088/admin"}}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
	t.Run("port 0 takes the records' port; path and scheme are as given", func(t *testing.T) {
		z := newZone()
		z.pod("janus-0", "fd00::1", 7089)
		got, err := find(t, z, "0", "&path=/a/b/&scheme=https")
		want := []broker.Found{{Name: "janus-0", Ordinal: 0, Address: "https://[fd00::1]:7089/a/b"}}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
	t.Run("of several ports of one pod the given one counts, and 0 is an error", func(t *testing.T) {
		z := newZone()
		z.pod("janus-0", "10.0.0.1", 7088)
		z.pod("janus-0", "", 8188)
		if got, err := find(t, z, "7088", ""); err != nil || len(got) != 1 {
			t.Errorf("got %v, %v", got, err)
		}
		if _, err := find(t, z, "0", ""); err == nil || !strings.Contains(err.Error(), "_NAME._tcp.") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("of several addresses IPv4 and then the lowest counts", func(t *testing.T) {
		z := newZone()
		z.pod("janus-0", "fd00::1", 1)
		z.pod("janus-0", "10.0.0.9", 1)
		z.pod("janus-0", "10.0.0.8", 1)
		got, err := find(t, z, "7088", "")
		if err != nil || len(got) != 1 || got[0].Address != "http://10.0.0.8:7088/admin" {
			t.Errorf("got %v, %v", got, err)
		}
	})
	t.Run("a pod without an address yet is left out", func(t *testing.T) {
		z := newZone()
		z.pod("janus-0", "10.0.0.1", 1)
		z.pod("janus-1", "", 1)
		got, err := find(t, z, "7088", "")
		if err != nil || len(got) != 1 {
			t.Errorf("got %v, %v", got, err)
		}
	})
	t.Run("more records than fit in a datagram come by TCP", func(t *testing.T) {
		z := newZone()
		const n = 400
		for i := range n {
			z.pod(fmt.Sprintf("janus-%d", i), fmt.Sprintf("10.0.%d.%d", i/250, i%250+1), 1)
		}
		got, err := find(t, z, "7088", "")
		if err != nil || len(got) != n || got[n-1].Ordinal != n-1 || z.tcp.Load() == 0 {
			t.Errorf("got %d, %v; %d questions by TCP", len(got), err, z.tcp.Load())
		}
	})
	t.Run("no such name is an empty list", func(t *testing.T) {
		if got, err := find(t, newZone(), "7088", ""); err != nil || len(got) != 0 {
			t.Errorf("got %v, %v", got, err)
		}
	})
	t.Run("a name without records is an empty list", func(t *testing.T) {
		z := newZone()
		z.srv[service] = nil
		if got, err := find(t, z, "7088", ""); err != nil || len(got) != 0 {
			t.Errorf("got %v, %v", got, err)
		}
	})
	t.Run("a service that is not available is an empty list", func(t *testing.T) {
		z := newZone()
		z.srv[service] = []dnsmessage.SRVResource{{Target: dnsmessage.MustNewName(".")}}
		if got, err := find(t, z, "7088", ""); err != nil || len(got) != 0 {
			t.Errorf("got %v, %v", got, err)
		}
	})
	t.Run("a failing server is an error, never an empty list", func(t *testing.T) {
		for _, rcode := range []dnsmessage.RCode{dnsmessage.RCodeServerFailure, dnsmessage.RCodeRefused} {
			z := newZone()
			z.pod("janus-0", "10.0.0.1", 1)
			z.rcode[service] = rcode
			if got, err := find(t, z, "7088", ""); err == nil {
				t.Errorf("%v: got %v", rcode, got)
			}
		}
	})
	t.Run("an address that cannot be asked for is an error", func(t *testing.T) {
		z := newZone()
		z.pod("janus-0", "10.0.0.1", 1)
		z.pod("janus-1", "10.0.0.2", 1)
		z.rcode["janus-1."+service] = dnsmessage.RCodeServerFailure
		if got, err := find(t, z, "7088", ""); err == nil {
			t.Errorf("got %v", got)
		}
	})
	t.Run("so is one of which only one kind can be asked for", func(t *testing.T) {
		z := newZone()
		z.pod("janus-0", "10.0.0.1", 1)
		z.rcode["janus-0."+service+" TypeA"] = dnsmessage.RCodeServerFailure
		if got, err := find(t, z, "7088", ""); err == nil {
			t.Errorf("got %v", got)
		}
	})
	t.Run("a silent server is an error when the context ends", func(t *testing.T) {
		z := newZone()
		z.mute = true
		d, err := discovery.ParseDNS(service + ":7088?resolver=" + z.serve(t))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if got, err := d.Find(ctx); err == nil {
			t.Errorf("got %v", got)
		}
	})
	t.Run("pods of a Deployment are refused with the remedy", func(t *testing.T) {
		for _, name := range []string{"10-0-0-7", "web"} {
			z := newZone()
			z.pod(name, "10.0.0.7", 1)
			_, err := find(t, z, "7088", "")
			if _, ok := errors.AsType[*broker.InvalidError](err); !ok || !strings.Contains(err.Error(), "serviceName") {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
	t.Run("two pods with one ordinal are refused", func(t *testing.T) {
		z := newZone()
		z.pod("a-1", "10.0.0.1", 1)
		z.pod("b-1", "10.0.0.2", 1)
		if _, err := find(t, z, "7088", ""); err == nil || !strings.Contains(err.Error(), "both have the ordinal 1") {
			t.Errorf("got %v", err)
		}
	})
}
