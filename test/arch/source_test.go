package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/roomscaler/roomscaler"
)

// source is one Go file.
type source struct {
	path  string // from the root, with slashes
	text  string
	tree  *ast.File
	fset  *token.FileSet
	paths []string // of its imports
}

func (s source) dir() string  { return path.Dir(s.path) }
func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }
func (s source) line(n ast.Node) int {
	return s.fset.Position(n.Pos()).Line
}

// lab reports whether the file belongs to the nested module of the lab.
func (s source) lab() bool { return strings.HasPrefix(s.path, "test/lab/") }

// support reports whether the file only ever serves tests.
func (s source) support() bool {
	return s.isTest() || strings.HasPrefix(s.path, "test/") || strings.HasSuffix(s.dir(), "test")
}

func (s source) imports(p string) bool {
	for _, q := range s.paths {
		if q == p {
			return true
		}
	}
	return false
}

// files lists the paths of all files in the repository that are written by hand.
func files(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel == ".git" || rel == "bin" || rel == "out" || d.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		all = append(all, rel)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func read(t *testing.T, p string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(p)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// sources parses every Go file of both modules.
func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	for _, p := range files(t) {
		if path.Ext(p) == ".go" {
			all = append(all, parse(t, p, read(t, p)))
		}
	}
	if len(all) < 20 {
		t.Fatalf("only %d Go files found; the walk is broken", len(all))
	}
	return all
}

func parse(t *testing.T, p, text string) source {
	t.Helper()
	s := source{path: p, text: text, fset: token.NewFileSet()}
	var err error
	if s.tree, err = parser.ParseFile(s.fset, p, text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
		t.Fatal(err)
	}
	for _, i := range s.tree.Imports {
		s.paths = append(s.paths, strings.Trim(i.Path.Value, `"`))
	}
	return s
}
