package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A Cache is a folder of built programs.
type Cache struct {
	dir string
}

// OpenCache uses dir as a cache, for "" the folder "roomscaler" where the user's caches
// are ($XDG_CACHE_HOME, else ~/.cache). Nothing is created before something is built.
func OpenCache(dir string) (Cache, error) {
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return Cache{}, fmt.Errorf("finding the folder of caches: %w", err)
		}
		dir = filepath.Join(base, "roomscaler", "cluster")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Cache{}, fmt.Errorf("cache folder %s: %w", dir, err)
	}
	return Cache{dir: abs}, nil
}

// Program returns the path of a component's program, [ErrNotBuilt] if it is not there.
func (c Cache) Program(name string) (string, error) {
	chosen, err := choose([]string{name})
	if err != nil {
		return "", err
	}
	p := c.program(chosen[0])
	if _, err := os.Stat(p); err != nil {
		return "", fmt.Errorf("%w: %s %s in %s", ErrNotBuilt, name, chosen[0].Version, c.dir)
	}
	return p, nil
}

// ErrNotBuilt means that a program is not in the cache.
var ErrNotBuilt = errors.New("not built")

// Missing returns those of the components (all for no name) that are not in the cache.
func (c Cache) Missing(names ...string) ([]string, error) {
	chosen, err := choose(names)
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, comp := range chosen {
		if _, err := os.Stat(c.program(comp)); err != nil {
			missing = append(missing, comp.Name)
		}
	}
	return missing, nil
}

func (c Cache) program(comp Component) string {
	return filepath.Join(c.dir, comp.key(), comp.Name)
}

// lockEvery is how often a builder asks for the lock that another one holds.
const lockEvery = time.Second

// lock waits until no other process builds into the cache. The lock ends with the
// process, so a killed builder leaves none.
func (c Cache) lock(ctx context.Context, progress io.Writer) (unlock func(), err error) {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the cache: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(c.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the cache's lock: %w", err)
	}
	told := false
	tick := time.NewTicker(lockEvery)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", f.Name(), err)
		}
		if !told {
			fmt.Fprintln(progress, "waiting for another build into", c.dir)
			told = true
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("waiting for another build into %s: %w", c.dir, ctx.Err())
		case <-tick.C:
		}
	}
}

// environment returns env without the settings that would change what is built, and with
// those that builds of other people's modules need.
func environment(env []string) []string {
	out := make([]string, 0, len(env)+4)
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		switch name {
		case "GOFLAGS", "GOOS", "GOARCH", "CGO_ENABLED", "GOWORK":
		default:
			out = append(out, e)
		}
	}
	return append(out, "GOFLAGS=-mod=mod -buildvcs=false", "CGO_ENABLED=0", "GOWORK=off")
}
