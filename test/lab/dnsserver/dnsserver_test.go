package dnsserver_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/test/lab/dnsserver"
)

const service = "janus.demo.svc.cluster.local"

func pods(n int) []dnsserver.Endpoint {
	var list []dnsserver.Endpoint
	for i := range n {
		list = append(list, dnsserver.Endpoint{Host: fmt.Sprintf("janus-%d", i), IP: netip.AddrFrom4([4]byte{127, 0, 1, byte(i + 1)}), Port: 7088})
	}
	return list
}

// resolver returns Go's own resolver, which asks at list's server, and the networks that it used.
func resolver(t *testing.T, list *atomic.Pointer[[]dnsserver.Endpoint]) (*net.Resolver, func() []string) {
	t.Helper()
	s, err := dnsserver.Listen(t.Context(), service, func() []dnsserver.Endpoint { return *list.Load() })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	var mu sync.Mutex
	var used []string
	r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		mu.Lock()
		used = append(used, network[:3])
		mu.Unlock()
		var d net.Dialer
		return d.DialContext(ctx, network, s.Addr())
	}}
	return r, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return used
	}
}

func TestServer(t *testing.T) {
	var list atomic.Pointer[[]dnsserver.Endpoint]
	set := func(n int) {
		l := pods(n)
		list.Store(&l)
	}
	set(3)
	r, _ := resolver(t, &list)
	for _, query := range [][3]string{{"", "", service}, {"admin", "tcp", service}} {
		t.Run(fmt.Sprintf("an SRV query of the service names every pod %q", query[0]), func(t *testing.T) {
			_, got, err := r.LookupSRV(t.Context(), query[0], query[1], query[2]+".")
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, g := range got {
				names = append(names, fmt.Sprintf("%s:%d", g.Target, g.Port))
			}
			sort.Strings(names)
			want := []string{"janus-0." + service + ".:7088", "janus-1." + service + ".:7088", "janus-2." + service + ".:7088"}
			if d := cmp.Diff(want, names); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
	t.Run("a pod's name has its own address", func(t *testing.T) {
		got, err := r.LookupHost(t.Context(), "janus-2."+service+".")
		if err != nil || !slices.Equal(got, []string{"127.0.1.3"}) {
			t.Errorf("got %v, %v", got, err)
		}
	})
	t.Run("a pod that is not there is not found", func(t *testing.T) {
		_, err := r.LookupHost(t.Context(), "janus-3."+service+".")
		var dns *net.DNSError
		if !errors.As(err, &dns) || !dns.IsNotFound {
			t.Errorf("got %v, want not found", err)
		}
	})
	t.Run("so are other names", func(t *testing.T) {
		_, err := r.LookupHost(t.Context(), "example.com.")
		var dns *net.DNSError
		if !errors.As(err, &dns) || !dns.IsNotFound {
			t.Errorf("got %v, want not found", err)
		}
	})
	t.Run("each query sees the pods of its moment", func(t *testing.T) {
		set(5)
		_, got, err := r.LookupSRV(t.Context(), "", "", service+".")
		if err != nil || len(got) != 5 {
			t.Errorf("got %d records, %v; want 5", len(got), err)
		}
	})
	t.Run("a list too long for UDP comes over TCP", func(t *testing.T) {
		set(60)
		r, used := resolver(t, &list)
		_, got, err := r.LookupSRV(t.Context(), "", "", service+".")
		if err != nil || len(got) != 60 {
			t.Errorf("got %d records, %v; want 60", len(got), err)
		}
		if d := cmp.Diff([]string{"udp", "tcp"}, used()); d != "" {
			t.Errorf("networks: -want +got\n%s", d)
		}
	})
}
