package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/test/lab/cluster"
)

func open(t *testing.T) (cache cluster.Cache, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "cache")
	cache, err := cluster.OpenCache(dir)
	if err != nil {
		t.Fatal(err)
	}
	return cache, dir
}

func TestComponents(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range cluster.Components() {
		if seen[c.Name] {
			t.Errorf("%s is there twice", c.Name)
		}
		seen[c.Name] = true
		if c.Module == "" || c.Version == "" || (c.Package == "") == (c.Main == "") {
			t.Errorf("%+v: it is built from a package of a module, or from a source beside one", c)
		}
	}
	for _, name := range cluster.ControlPlaneComponents() {
		if !seen[name] {
			t.Errorf("%s is no component", name)
		}
	}
}

func TestCache(t *testing.T) {
	t.Run("an empty cache lacks everything, and looking makes nothing", func(t *testing.T) {
		cache, dir := open(t)
		missing, err := cache.Missing()
		if err != nil || len(missing) != len(cluster.Components()) {
			t.Errorf("got %v, %v", missing, err)
		}
		if _, err := cache.Program("etcd"); !errors.Is(err, cluster.ErrNotBuilt) {
			t.Errorf("got %v, want %v", err, cluster.ErrNotBuilt)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the folder is there: %v", err)
		}
	})
	t.Run("a component that nobody knows is told with those that are known", func(t *testing.T) {
		cache, _ := open(t)
		for _, err := range []error{
			func() error { _, err := cache.Missing("etcd", "docker"); return err }(),
			func() error { _, err := cache.Program("docker"); return err }(),
			cluster.Build(t.Context(), cache, &bytes.Buffer{}, "docker"),
		} {
			if err == nil || !strings.Contains(err.Error(), `"docker"`) || !strings.Contains(err.Error(), "kube-apiserver") {
				t.Errorf("got %v", err)
			}
		}
	})
	t.Run("a control plane that has not been built does not start", func(t *testing.T) {
		cache, _ := open(t)
		if _, err := cluster.StartControlPlane(t.Context(), cache, cluster.Options{Dir: t.TempDir()}); !errors.Is(err, cluster.ErrNotBuilt) {
			t.Errorf("got %v, want %v", err, cluster.ErrNotBuilt)
		}
	})
	t.Run("to end a control plane that is not there is nothing", func(t *testing.T) {
		cache, _ := open(t)
		if err := cluster.Down(t.Context(), cache); err != nil {
			t.Error(err)
		}
	})
}

// A build that is interrupted leaves no program, and nothing that hinders the next.
func TestBuild_Interrupted(t *testing.T) {
	cache, dir := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var progress bytes.Buffer
	for range 2 {
		if err := cluster.Build(ctx, cache, &progress, "etcd"); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want %v", err, context.Canceled)
		}
	}
	missing, err := cache.Missing("etcd")
	if diff := cmp.Diff(missing, []string{"etcd"}); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains([]string{"lock", "work"}, e.Name()) {
			t.Errorf("%s was left", e.Name())
		}
	}
	if !strings.Contains(progress.String(), "[1/1] etcd") {
		t.Errorf("the progress is %q", progress.String())
	}
}
