// Package discovery has the finders, which tell the instances that there are.
package discovery

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/roomscaler/roomscaler/broker"
)

// Static is a fixed list of instances.
type Static struct{ list []broker.Found }

// ParseStatic reads a list such as "janus-0=http://127.0.0.1:7088/admin,janus-1=…".
// An instance's ordinal is the number at the end of its name, else its position. A bad list is
// *broker.InvalidError with field "discover".
func ParseStatic(list string) (*Static, error) {
	var out []broker.Found
	for i, entry := range strings.Split(list, ",") {
		name, address, ok := strings.Cut(strings.TrimSpace(entry), "=")
		if !ok || name == "" {
			return nil, invalid("entry %d is no NAME=URL; write static:janus-0=http://127.0.0.1:7088/admin,janus-1=…", i+1)
		}
		if broker.CheckInstance(name) != nil {
			return nil, invalid("entry %d: %q is no lower-case DNS name; use a-z, 0-9, - and .", i+1, name)
		}
		if err := checkAddress(address); err != nil {
			return nil, invalid("%s: %s", name, err.Error())
		}
		ordinal, ok := broker.OrdinalOf(name)
		if !ok {
			ordinal = i
		}
		out = append(out, broker.Found{Name: name, Ordinal: ordinal, Address: strings.TrimSuffix(address, "/")})
	}
	if err := sortFound(out); err != nil {
		return nil, err
	}
	return &Static{out}, nil
}

// Find returns the list. It neither blocks nor fails.
func (s *Static) Find(context.Context) ([]broker.Found, error) { return slices.Clone(s.list), nil }

func checkAddress(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return fmt.Errorf("its address is no URL; give one such as http://127.0.0.1:7088/admin")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("its address has a user, query or fragment; give scheme, host, port and path only")
	}
	return nil
}

// sortFound sorts by ordinal. Neither a name nor an ordinal may be there twice: scaling takes
// instances away by ordinal.
func sortFound(list []broker.Found) error {
	slices.SortFunc(list, func(a, b broker.Found) int { return a.Ordinal - b.Ordinal })
	names := map[string]bool{}
	for i, f := range list {
		if names[f.Name] {
			return invalid("%s is there twice; give each instance a name of its own", f.Name)
		}
		names[f.Name] = true
		if i > 0 && list[i-1].Ordinal == f.Ordinal {
			return invalid("%s and %s both have the ordinal %d; end their names in different numbers", list[i-1].Name, f.Name, f.Ordinal)
		}
	}
	return nil
}

func invalid(format string, v ...any) error {
	return &broker.InvalidError{Field: "discover", Want: fmt.Sprintf(format, v...)}
}
