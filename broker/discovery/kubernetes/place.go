package kubernetes

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/roomscaler/roomscaler/broker"
)

// Place says which pods are instances and where their admin API is.
type Place struct {
	Namespace, Service string
	Port               string // a port of the Service by name, a number, or "" for its only port
	Path               string // of the instances' addresses, without a slash at its end
	Scheme             string // http or https
}

var label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Parse reads "NAMESPACE/SERVICE", followed if need be by "?" and parameters:
//
//	port=admin    port of the Service by its name, or a number; default: the only one it has
//	path=/admin   path of the instances' addresses
//	scheme=http   http or https
//
// Bad input is *broker.InvalidError with field "discover".
func Parse(spec string) (Place, error) {
	names, params, _ := strings.Cut(spec, "?")
	namespace, service, ok := strings.Cut(names, "/")
	if !ok || !label.MatchString(namespace) || !label.MatchString(service) {
		return Place{}, invalid("%q is no NAMESPACE/SERVICE; write kubernetes:media/janus", names)
	}
	p := Place{Namespace: namespace, Service: service, Path: "/admin", Scheme: "http"}
	q, err := url.ParseQuery(params)
	if err != nil {
		return Place{}, invalid("what follows ? is malformed; write ?port=admin&path=/admin&scheme=http")
	}
	for name, v := range q {
		if err := p.set(name, v[len(v)-1]); err != nil {
			return Place{}, err
		}
	}
	return p, nil
}

func (p *Place) set(name, v string) error {
	switch name {
	case "port":
		n, err := strconv.Atoi(v)
		if err == nil && (n < 1 || n > 65535) || err != nil && !label.MatchString(v) {
			return invalid("port %q is neither a name nor 1-65535; write port=admin", v)
		}
		p.Port = v
	case "path":
		if !strings.HasPrefix(v, "/") || strings.ContainsAny(v, "?# ") {
			return invalid("path %q does not begin with /, or has more than a path; write path=/admin", v)
		}
		p.Path = strings.TrimSuffix(v, "/")
	case "scheme":
		if v != "http" && v != "https" {
			return invalid("scheme %q is neither http nor https", v)
		}
		p.Scheme = v
	default:
		return invalid("there is no parameter %q; there are port, path, scheme", name)
	}
	return nil
}

func invalid(format string, v ...any) error {
	return &broker.InvalidError{Field: "discover", Want: fmt.Sprintf(format, v...)}
}
