package discovery_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/discovery"
)

func TestParseStatic(t *testing.T) {
	cases := map[string]struct {
		list string
		want []broker.Found
	}{
		"the ordinal is the number at the end of the name": {"janus-3=http://127.0.0.1:7088/admin, janus-1=https://[fd00::1]:7089/a/", []broker.Found{
			{Name: "janus-1", Ordinal: 1, Address: "https://[fd00::1]:7089/a"}, {Name: "janus-3", Ordinal: 3, Address: "http://127.0.0.1:7088/admin"}}},
		"without one it is the position": {"a=http://h,b=http://i", []broker.Found{{Name: "a", Ordinal: 0, Address: "http://h"}, {Name: "b", Ordinal: 1, Address: "http://i"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := discovery.ParseStatic(tc.list)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Find(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParse_RefusesBadInput(t *testing.T) {
	static := func(s string) error { _, err := discovery.ParseStatic(s); return err }
	dns := func(s string) error { _, err := discovery.ParseDNS(s); return err }
	cases := []struct {
		parse       func(string) error
		input, want string
	}{
		{static, "", "entry 1 is no NAME=URL; write static:"},
		{static, "a=http://h,", "entry 2 is no NAME=URL"},
		{static, "A=http://h", "lower-case DNS name"},
		{static, "a=", "a: its address is no URL"},
		{static, "a=ftp://h", "give one such as http://127.0.0.1:7088/admin"},
		{static, "a=http://", "give one such as"},
		{static, "a=http://u:hunter2@h", "user, query or fragment"},
		{static, "a=http://h?x", "user, query or fragment"},
		{static, "a=http://h,a=http://i", "a is there twice"},
		{static, "a-1=http://h,b-1=http://i", "both have the ordinal 1; end their names"},
		{static, "a=http://h,b-0=http://i", "both have the ordinal 0; end their names"},
		{dns, "", "no HOST:PORT; write dns:janus"},
		{dns, "janus", "no HOST:PORT"},
		{dns, ":7088", "no HOST:PORT"},
		{dns, "janus:http", "no port; give 1-65535, or 0"},
		{dns, "janus:70000", "no port"},
		{dns, "janus:7088?resolver=ns1", "no IP:PORT; write resolver=10.96.0.10:53"},
		{dns, "janus:7088?path=admin", "does not begin with /"},
		{dns, "janus:7088?scheme=ws", "neither http nor https"},
		{dns, "janus:7088?ttl=3", "there are resolver, path, scheme"},
		{dns, "janus:7088?%zz", "malformed"},
	}
	for _, tc := range cases {
		t.Run(tc.input, func(t *testing.T) {
			err := tc.parse(tc.input)
			wrong, ok := errors.AsType[*broker.InvalidError](err)
			if !ok || wrong.Field != "discover" || !strings.Contains(wrong.Want, tc.want) || strings.Contains(wrong.Want, "hunter2") || strings.Contains(wrong.Want, "\n") {
				t.Errorf("got %v", err)
			}
		})
	}
}
