package discovery

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/roomscaler/roomscaler/broker"
)

// DNS finds the pods of a StatefulSet by the SRV records of its headless Service.
type DNS struct {
	host     string
	port     uint16 // 0: that of the records
	path     string
	scheme   string
	resolver *net.Resolver
}

// lookups bounds how many addresses are asked for at once.
const lookups = 32

// fromAddress is the first label of a pod that is not of a StatefulSet with this
// Service: it changes with each pod, and its end is no ordinal.
var fromAddress = regexp.MustCompile(`^\d+-\d+-\d+-\d+$`)

// ParseDNS reads "HOST:PORT", followed if need be by "?" and parameters:
//
//	resolver=IP:PORT  ask this name server instead of the system's
//	path=/admin       path of the instances' addresses
//	scheme=http       http or https
//
// PORT 0 takes the port of the SRV records. Bad input is *broker.InvalidError with field "discover".
func ParseDNS(spec string) (*DNS, error) {
	hostport, params, _ := strings.Cut(spec, "?")
	host, p, err := net.SplitHostPort(hostport)
	if err != nil || host == "" || strings.ContainsAny(host, "/:@ ") {
		return nil, invalid("%q is no HOST:PORT; write dns:janus.media.svc.cluster.local:7088", hostport)
	}
	port, err := strconv.ParseUint(p, 10, 16)
	if err != nil {
		return nil, invalid("%q is no port; give 1-65535, or 0 for the port of the SRV records", p)
	}
	d := &DNS{host: host, port: uint16(port), path: "/admin", scheme: "http", resolver: &net.Resolver{PreferGo: true, StrictErrors: true}}
	q, err := url.ParseQuery(params)
	if err != nil {
		return nil, invalid("what follows ? is malformed; write ?path=/admin&scheme=http")
	}
	for name, v := range q {
		if err := d.set(name, v[len(v)-1]); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *DNS) set(name, v string) error {
	switch name {
	case "resolver":
		if _, err := netip.ParseAddrPort(v); err != nil {
			return invalid("resolver %q is no IP:PORT; write resolver=10.96.0.10:53", v)
		}
		d.resolver.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, v)
		}
	case "path":
		if !strings.HasPrefix(v, "/") || strings.ContainsAny(v, "?# ") {
			return invalid("path %q does not begin with /, or has more than a path; write path=/admin", v)
		}
		d.path = strings.TrimSuffix(v, "/")
	case "scheme":
		if v != "http" && v != "https" {
			return invalid("scheme %q is neither http nor https", v)
		}
		d.scheme = v
	default:
		return invalid("there is no parameter %q; there are resolver, path, scheme", name)
	}
	return nil
}

// Find asks for the records and the addresses of their targets. No such name, or a name
// without records, is an empty list: a headless Service without pods looks so. Everything
// else that goes wrong is an error, also when it concerns one target only. It asks again
// within ctx as the resolver does, and blocks no longer than ctx.
func (d *DNS) Find(ctx context.Context) ([]broker.Found, error) {
	_, records, err := d.resolver.LookupSRV(ctx, "", "", d.host)
	if notFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("asking for the SRV records of %s: %w", d.host, err)
	}
	ports := map[string]uint16{} // by target
	for _, r := range records {
		if r.Target == "." {
			continue // "decidedly not available"
		}
		port := d.port
		if port == 0 {
			port = r.Port
		}
		if other, ok := ports[r.Target]; ok && other != port {
			return nil, invalid("%s has the ports %d and %d at %s; give the port instead of 0, or ask for _NAME._tcp.%s", r.Target, other, port, d.host, d.host)
		}
		ports[r.Target] = port
	}
	list, err := d.resolve(ctx, ports)
	if err != nil {
		return nil, err
	}
	if err := sortFound(list); err != nil {
		return nil, err
	}
	return list, nil
}

// resolve leaves out targets without an address: their pods have none yet, or no more.
func (d *DNS) resolve(ctx context.Context, ports map[string]uint16) ([]broker.Found, error) {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		list []broker.Found
		errs []error
		slot = make(chan struct{}, lookups)
	)
	for target, port := range ports {
		wg.Go(func() {
			slot <- struct{}{}
			defer func() { <-slot }()
			f, ok, err := d.found(ctx, target, port)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
			} else if ok {
				list = append(list, f)
			}
		})
	}
	wg.Wait()
	if errs != nil {
		return nil, errs[0] // one is enough to know what is wrong
	}
	return list, nil
}

func (d *DNS) found(ctx context.Context, target string, port uint16) (broker.Found, bool, error) {
	name, _, _ := strings.Cut(strings.ToLower(target), ".")
	ordinal, ok := broker.OrdinalOf(name)
	if !ok || fromAddress.MatchString(name) || broker.CheckInstance(name) != nil {
		return broker.Found{}, false, invalid("%s does not begin with the name of a StatefulSet's pod, such as janus-0; set the StatefulSet's serviceName to this Service", target)
	}
	addrs, err := d.resolver.LookupNetIP(ctx, "ip", target)
	if notFound(err) {
		return broker.Found{}, false, nil
	}
	if err != nil {
		return broker.Found{}, false, fmt.Errorf("asking for the address of %s: %w", target, err)
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	slices.SortFunc(addrs, netip.Addr.Compare) // IPv4 first
	at := netip.AddrPortFrom(addrs[0], port)
	return broker.Found{Name: name, Ordinal: ordinal, Address: d.scheme + "://" + at.String() + d.path}, true, nil
}

func notFound(err error) bool {
	d, ok := errors.AsType[*net.DNSError](err)
	return ok && d.IsNotFound
}
