package kubernetes_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/discovery/kubernetes"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		spec string
		want kubernetes.Place
		bad  string
	}{
		{"media/janus", kubernetes.Place{Namespace: "media", Service: "janus", Path: "/admin", Scheme: "http"}, ""},
		{"media/janus?port=admin&path=/a/b/&scheme=https", kubernetes.Place{Namespace: "media", Service: "janus", Port: "admin", Path: "/a/b", Scheme: "https"}, ""},
		{"media/janus?port=7088", kubernetes.Place{Namespace: "media", Service: "janus", Port: "7088", Path: "/admin", Scheme: "http"}, ""},
		{"janus", kubernetes.Place{}, "no NAMESPACE/SERVICE"},
		{"", kubernetes.Place{}, "no NAMESPACE/SERVICE"},
		{"media/", kubernetes.Place{}, "no NAMESPACE/SERVICE"},
		{"media/janus/admin", kubernetes.Place{}, "no NAMESPACE/SERVICE"},
		{"Media/janus", kubernetes.Place{}, "no NAMESPACE/SERVICE"},
		{"media/janus?port=0", kubernetes.Place{}, "port"},
		{"media/janus?port=70000", kubernetes.Place{}, "port"},
		{"media/janus?port=Admin", kubernetes.Place{}, "port"},
		{"media/janus?path=admin", kubernetes.Place{}, "path"},
		{"media/janus?scheme=ws", kubernetes.Place{}, "scheme"},
		{"media/janus?prot=1", kubernetes.Place{}, `no parameter "prot"`},
		{"media/janus?port=%zz", kubernetes.Place{}, "malformed"},
	} {
		got, err := kubernetes.Parse(c.spec)
		if c.bad == "" && err != nil {
			t.Errorf("%q: %v", c.spec, err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", c.spec, d)
		}
		if wrong, ok := errors.AsType[*broker.InvalidError](err); c.bad != "" && (!ok || wrong.Field != "discover" || !strings.Contains(wrong.Want, c.bad)) {
			t.Errorf("%q: got %v, want one that says %q", c.spec, err, c.bad)
		}
	}
}
