package arch

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

const maxLines = 500

// vague names say nothing of what is inside.
var vague = []string{"util", "utils", "common", "helper", "helpers", "types", "pkg", "impl", "manager", "misc", "shared", "base", "internal", "tools", "lib"}

// atRoot is all that may stand at the top of the repository; further things go into one of these.
var atRoot = []string{"broker", "scaler", "drainhook", "charts", "test", "cmd", "docs", ".ci", "go.mod", "go.sum", "Makefile", "Dockerfile",
	"README.md", "LICENSE", ".git", ".gitignore", ".dockerignore", "bin", "out"}

func TestNames_Root(t *testing.T) {
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(atRoot, e.Name()) {
			t.Errorf("%s has no place at the top of the repository", e.Name())
		}
	}
}

func TestNames_Folders(t *testing.T) {
	for _, s := range sources(t) {
		for part := range strings.SplitSeq(s.dir(), "/") {
			if slices.Contains(vague, part) {
				t.Errorf("%s: the folder name %q says nothing of what is inside", s.path, part)
			}
		}
		if name := s.tree.Name.Name; slices.Contains(vague, strings.TrimSuffix(name, "_test")) {
			t.Errorf("%s: the package name %q says nothing of what is inside", s.path, name)
		}
	}
}

func TestSource(t *testing.T) {
	all := sources(t)
	bubbles := map[string]bool{} // folders whose tests run in synctest bubbles
	for _, s := range all {
		if s.imports("testing/synctest") {
			bubbles[s.dir()] = true
		}
	}
	for _, s := range all {
		for _, why := range faults(s, bubbles[s.dir()]) {
			t.Errorf("%s:%s", s.path, why)
		}
	}
}

// unfinished work is an issue, not a word in a file.
var unfinished = []string{"TO" + "DO", "FIX" + "ME", "XX" + "X:"}

func TestUnfinished(t *testing.T) {
	for _, p := range files(t) {
		switch path.Ext(p) {
		case ".go", ".md", ".sh", ".lua", ".yaml", ".yml", ".tpl", ".mod", "":
		default:
			continue
		}
		if p == "LICENSE" {
			continue
		}
		for i, line := range strings.Split(read(t, p), "\n") {
			for _, w := range unfinished {
				if strings.Contains(line, w) {
					t.Errorf("%s:%d: %s; finish it or file an issue", p, i+1, w)
				}
			}
		}
	}
}

// faults lists what must not be in a file, each as "line: what". In a bubble time is
// fake and a sleep costs nothing.
func faults(s source, bubble bool) []string {
	var all []string
	add := func(n ast.Node, format string, args ...any) {
		all = append(all, fmt.Sprintf("%d: %s", s.line(n), fmt.Sprintf(format, args...)))
	}
	if n := strings.Count(s.text, "\n"); n > maxLines {
		all = append(all, fmt.Sprintf("%d: more than %d lines; split it by content", n, maxLines))
	}
	for _, i := range s.tree.Imports {
		if i.Path.Value == `"github.com/prometheus/client_golang/prometheus/promauto"` {
			add(i, "promauto registers globally; pass a prometheus.Registerer")
		}
		if i.Name != nil && i.Name.Name == "_" && i.Path.Value != `"embed"` {
			add(i, "an import for its side effects; wire it in main")
		}
		if i.Name != nil && i.Name.Name == "." {
			add(i, "a dot import hides where names come from")
		}
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Name.Name == "init" && n.Recv == nil {
				add(n, "func init: build it in main and pass it in")
			}
		case *ast.StructType:
			for _, f := range n.Fields.List {
				if !s.support() && selects(f.Type, "context", "Context") {
					add(f, "a context in a struct; pass it to each call")
				}
			}
		case *ast.SelectorExpr:
			for _, name := range []string{"MustRegister", "Register", "DefaultRegisterer", "DefaultGatherer"} {
				if selects(n, "prometheus", name) {
					add(n, "prometheus.%s is global; pass a prometheus.Registerer", name)
				}
			}
			for _, name := range []string{"DefaultServeMux", "DefaultClient", "DefaultTransport"} {
				if selects(n, "http", name) && !s.support() {
					add(n, "http.%s is global; make one", name)
				}
			}
			if selects(n, "time", "Sleep") && !bubble {
				add(n, "time.Sleep outside a synctest bubble; wait for what is to happen")
			}
		}
		return true
	})
	return all
}

// selects reports whether the expression is pkg.name.
func selects(e ast.Expr, pkg, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg
}

// The check must be able to fail.
func TestSource_Faults(t *testing.T) {
	for _, tc := range []struct {
		name, file, text string
		want             int
	}{
		{"plain code", "a.go", "package a\n\nfunc f() {}\n", 0},
		{"init", "a.go", "package a\n\nfunc init() {}\n", 1},
		{"a method called init", "a.go", "package a\n\ntype t int\n\nfunc (t) init() {}\n", 0},
		{"a context in a struct", "a.go", "package a\n\nimport \"context\"\n\ntype t struct{ ctx context.Context }\n", 1},
		{"a global registration", "a.go", "package a\n\nimport \"github.com/prometheus/client_golang/prometheus\"\n\nfunc f() { prometheus.MustRegister() }\n", 1},
		{"promauto", "a.go", "package a\n\nimport \"github.com/prometheus/client_golang/prometheus/promauto\"\n\nvar _ = promauto.With\n", 1},
		{"a sleep", "a_test.go", "package a\n\nimport \"time\"\n\nfunc f() { time.Sleep(1) }\n", 1},
		{"a sleep in a bubble", "a_test.go", "package a\n\nimport (\n\t\"testing/synctest\"\n\t\"time\"\n)\n\nfunc f() { synctest.Wait(); time.Sleep(1) }\n", 0},
		{"a blank import", "a.go", "package a\n\nimport _ \"net/http/pprof\"\n", 1},
		{"embedding", "a.go", "package a\n\nimport _ \"embed\"\n", 0},
		{"the default transport", "a.go", "package a\n\nimport \"net/http\"\n\nvar t = http.DefaultTransport\n", 1},
		{"a long file", "a.go", "package a\n" + strings.Repeat("\n", maxLines), 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := parse(t, tc.file, tc.text)
			if got := faults(s, s.imports("testing/synctest")); len(got) != tc.want {
				t.Errorf("got %q, want %d", got, tc.want)
			}
		})
	}
}
