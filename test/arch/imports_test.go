package arch

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// ours says which packages of this module a package's files (tests aside) may
// import. A package that stands here in no row fails the test: decide where it belongs.
var ours = map[string][]string{
	// The core knows nobody; whoever needs it comes to it.
	"broker": {},
	// The contract between programs: both sides hold it, so it holds neither.
	"broker/brokerapi": {},
	// Adapters around the core never meet, so that each can be replaced alone.
	"broker/httpapi":       {"broker", "broker/brokerapi"},
	"broker/memstore":      {"broker"},
	"broker/redisstore":    {"broker"},
	"broker/janus":         {"broker"},
	"broker/discovery":     {"broker"},
	"broker/brokermetrics": {"broker"},
	// The only one below broker that knows Kubernetes: a broker without it needs no cluster.
	"broker/discovery/kubernetes": {"broker"},
	// Contract suites know the contract, not who fulfils it.
	"broker/storetest":   {"broker"},
	"broker/backendtest": {"broker"},
	// These run elsewhere and upgrade apart from the broker: the wire alone binds them.
	"scaler": {"broker/brokerapi"},
	// The only one below scaler that knows Kubernetes: it fulfils the scaler's contract.
	"scaler/kube": {"scaler"},
	// The Kubernetes API in front of the scaler, as gRPC is for KEDA.
	"scaler/adapter": {"broker/brokerapi", "scaler"},
	"drainhook":      {"broker/brokerapi"},
	// Wiring: may import all of the above, and nobody imports it.
	"cmd/roomscaler": {"broker", "broker/brokerapi", "broker/httpapi", "broker/memstore", "broker/redisstore", "broker/janus",
		"broker/discovery", "broker/discovery/kubernetes", "broker/brokermetrics", "scaler", "scaler/kube", "drainhook"},
	"cmd/roomscaler-adapter": {"broker/brokerapi", "scaler", "scaler/adapter"},
}

// outside says which packages may import a module of others. A module in no row
// fails the test.
var outside = map[string][]string{
	"github.com/redis/go-redis/":          {"broker/redisstore", "cmd/roomscaler"},
	"google.golang.org/grpc":              {"scaler", "scaler/adapter", "cmd/roomscaler"},
	"google.golang.org/protobuf/":         {"scaler"},
	"github.com/kedacore/keda/":           {"scaler", "scaler/adapter"},
	"github.com/prometheus/client_golang": {"broker/brokermetrics", "scaler", "cmd/roomscaler"},
	"github.com/spf13/cobra":              {"cmd/roomscaler", "cmd/roomscaler-adapter"},
	"github.com/spf13/pflag":              {"cmd/roomscaler", "cmd/roomscaler-adapter"},
	"go.yaml.in/yaml/":                    {"broker/httpapi", "scaler/adapter", "cmd/roomscaler"},
	"golang.org/x/net/":                   {"broker/discovery"},
	"k8s.io/":                             {"broker/discovery/kubernetes", "scaler/kube", "scaler/adapter", "cmd/roomscaler-adapter"},
	"sigs.k8s.io/":                        {"scaler/adapter", "cmd/roomscaler-adapter"},
	"github.com/go-logr/logr":             {"broker/discovery/kubernetes", "scaler/kube"},
	// What proves the code is no part of it.
	"github.com/anishathalye/porcupine": {"broker/storetest"},
	"pgregory.net/rapid":                {"broker/storetest", "broker/backendtest"},
	"github.com/google/go-cmp/":         {"broker/storetest", "broker/backendtest"},
	"github.com/alicebob/miniredis/":    {},
	"github.com/rogpeppe/go-internal/":  {},
	"golang.org/x/sys/":                 {},
}

// std says what of the standard library a package must do without. The core is values
// and decisions: it opens nothing and listens nowhere.
var std = map[string][]string{
	"broker": {"net/http", "net", "os", "os/exec", "os/signal", "io/ioutil", "syscall", "unsafe", "database/sql"},
}

func TestImports(t *testing.T) {
	for _, s := range sources(t) {
		for _, p := range s.paths {
			if why := forbidden(s, p); why != "" {
				t.Errorf("%s imports %s: %s", s.path, p, why)
			}
		}
	}
}

// forbidden returns why the file may not import p, "" if it may.
func forbidden(s source, p string) string {
	if p == "C" {
		return "the binary is static"
	}
	rel, own := strings.CutPrefix(p, module+"/")
	if own && strings.HasPrefix(rel, "cmd/") {
		return "a main package is imported by none"
	}
	if s.lab() {
		return "" // a module of its own; it reaches what Go lets it reach
	}
	if strings.HasPrefix(s.dir(), "test/") || s.isTest() {
		return "" // may hold anything up to the light
	}
	mine, known := ours[s.dir()]
	switch {
	case !known:
		return "package " + s.dir() + " stands in no row of the table of imports"
	case own && strings.HasPrefix(rel, "test/"):
		return "only tests import test support"
	case own && !slices.Contains(mine, rel):
		return fmt.Sprintf("%s may import of ours only %v", s.dir(), mine)
	case own:
		return ""
	case !strings.Contains(strings.Split(p, "/")[0], "."):
		if slices.Contains(std[s.dir()], p) {
			return "not in the core"
		}
		return ""
	}
	for prefix, who := range outside {
		if p == strings.TrimSuffix(prefix, "/") || strings.HasPrefix(p, strings.TrimSuffix(prefix, "/")+"/") {
			if !slices.Contains(who, s.dir()) {
				return fmt.Sprintf("only %v may", who)
			}
			return ""
		}
	}
	return "a module that stands in no row of the table of modules"
}

// The check must be able to fail.
func TestImports_Forbidden(t *testing.T) {
	for _, tc := range []struct {
		file, path string
		bad        bool
	}{
		{"broker/x.go", "context", false},
		{"broker/x.go", "net/http", true},
		{"broker/x.go", "os", true},
		{"broker/x.go", module + "/broker/brokerapi", true},
		{"broker/x.go", "github.com/redis/go-redis/v9", true},
		{"broker/x_test.go", module + "/broker/memstore", false},
		{"broker/brokerapi/x.go", module + "/broker", true},
		{"broker/brokerapi/x.go", "net/http", false},
		{"broker/httpapi/x.go", module + "/broker/memstore", true},
		{"broker/memstore/x.go", module + "/broker/redisstore", true},
		{"broker/redisstore/x.go", "github.com/redis/go-redis/v9", false},
		{"broker/janus/x.go", "github.com/prometheus/client_golang/prometheus", true},
		{"scaler/x.go", module + "/broker", true},
		{"scaler/x.go", module + "/broker/brokerapi", false},
		{"scaler/x.go", "google.golang.org/grpc/codes", false},
		{"drainhook/x.go", module + "/scaler", true},
		{"drainhook/x.go", "github.com/spf13/cobra", true},
		{"cmd/roomscaler/x.go", module + "/drainhook", false},
		{"cmd/roomscaler/x.go", module + "/test/procs", true},
		{"cmd/roomscaler/x.go", "github.com/kedacore/keda/v2/pkg/scalers/externalscaler", true},
		{"broker/discovery/kubernetes/x.go", "k8s.io/client-go/tools/cache", false},
		{"broker/discovery/x.go", "k8s.io/client-go/tools/cache", true},
		{"broker/newthing/x.go", "context", true},
		{"scaler/x.go", "github.com/somebody/something", true},
		{"test/lab/demo/x.go", module + "/cmd/roomscaler", true},
	} {
		why := forbidden(source{path: tc.file}, tc.path)
		if (why != "") != tc.bad {
			t.Errorf("%s importing %s: got %q, want forbidden %v", tc.file, tc.path, why, tc.bad)
		}
	}
}
