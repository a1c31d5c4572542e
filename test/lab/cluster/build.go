package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Build makes those of the components (all for no name) that the cache lacks, one after
// the other, and writes a line with the seconds for each to progress. It needs the go command and
// the Go module proxy, and minutes for each of the larger programs: the compiler's own
// cache keeps what an interrupted build had compiled, so the next goes on from there. A
// program appears in the cache whole or not at all. While another process builds into the
// same cache, Build waits for it.
func Build(ctx context.Context, cache Cache, progress io.Writer, names ...string) error {
	chosen, err := choose(names)
	if err != nil {
		return err
	}
	missing, err := cache.Missing(names...)
	if err != nil || len(missing) == 0 {
		return err
	}
	unlock, err := cache.lock(ctx, progress)
	if err != nil {
		return err
	}
	defer unlock()
	for i, comp := range chosen {
		label := fmt.Sprintf("[%d/%d] %s %s", i+1, len(chosen), comp.Name, comp.Version)
		if _, err := os.Stat(cache.program(comp)); err == nil {
			fmt.Fprintf(progress, "%s: there\n", label)
			continue
		}
		fmt.Fprintf(progress, "%s: building\n", label)
		began := time.Now()
		used, err := cache.build(ctx, comp)
		if err != nil {
			return fmt.Errorf("building %s %s: %w", comp.Name, comp.Version, err)
		}
		fmt.Fprintf(progress, "%s: built in %.0f s (%.0f s of processor time)\n", label, time.Since(began).Seconds(), used.Seconds())
	}
	return nil
}

// build makes one program and returns the processor time that it took.
func (c Cache) build(ctx context.Context, comp Component) (time.Duration, error) {
	work := filepath.Join(c.dir, "work", comp.key())
	if err := os.MkdirAll(work, 0o755); err != nil {
		return 0, fmt.Errorf("making its folder: %w", err)
	}
	used, err := wrap(ctx, comp, work)
	if err != nil {
		return used, err
	}
	ld := []string{"-s", "-w"}
	for _, s := range comp.Stamps {
		ld = append(ld, "-X", s)
	}
	pkg := comp.Package
	if pkg == "" {
		pkg = "."
	}
	made := filepath.Join(work, "made")
	// Two at once: the linker takes up to 3 GB for one program.
	_, t, err := goCommand(ctx, work, "build", "-p", "2", "-trimpath", "-tags", strings.Join(comp.Tags, ","), "-ldflags", strings.Join(ld, " "), "-o", filepath.Join(made, comp.Name), pkg)
	used += t
	if err != nil {
		return used, err
	}
	if err := os.Rename(made, filepath.Join(c.dir, comp.key())); err != nil {
		return used, fmt.Errorf("moving it into the cache: %w", err)
	}
	return used, os.RemoveAll(work)
}

// gomod is what the go command tells of a go.mod.
type gomod struct {
	Go      string
	Godebug []struct{ Key, Value string }
	Exclude []struct{ Path, Version string }
	Replace []struct {
		Old, New struct{ Path, Version string }
	}
}

// wrap writes a module into dir whose build is the component's own: it requires the
// component, starts from its go.sum, and repeats what only a main module may say and the
// component's go.mod says (replacements, exclusions, GODEBUG).
func wrap(ctx context.Context, comp Component, dir string) (time.Duration, error) {
	// A folder of an interrupted build may hold a go.mod that no longer fits.
	if err := os.RemoveAll(filepath.Join(dir, "go.mod")); err != nil {
		return 0, fmt.Errorf("clearing its folder: %w", err)
	}
	out, used, err := goCommand(ctx, dir, "mod", "download", "-json", comp.Module+"@v"+comp.Version)
	if err != nil {
		return used, err
	}
	var module struct{ GoMod, Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return used, fmt.Errorf("reading what go mod download says: %w", err)
	}
	out, t, err := goCommand(ctx, dir, "mod", "edit", "-json", module.GoMod)
	used += t
	if err != nil {
		return used, err
	}
	var theirs gomod
	if err := json.Unmarshal(out, &theirs); err != nil {
		return used, fmt.Errorf("reading what go mod edit says: %w", err)
	}
	sum, err := os.ReadFile(filepath.Join(module.Dir, "go.sum"))
	if err != nil {
		return used, fmt.Errorf("reading its checksums: %w", err)
	}
	files := map[string][]byte{"go.mod": wrapper(comp, theirs), "go.sum": sum}
	if comp.Main != "" {
		files["main.go"] = []byte(comp.Main)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return used, fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return used, nil
}

// wrapper returns the go.mod of a module around the component.
func wrapper(comp Component, theirs gomod) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "module roomscaler.invalid/%s\n\ngo %s\n\n", comp.Name, theirs.Go)
	for _, g := range theirs.Godebug {
		fmt.Fprintf(&b, "godebug %s=%s\n", g.Key, g.Value)
	}
	fmt.Fprintf(&b, "require %s v%s\n", comp.Module, comp.Version)
	for _, e := range theirs.Exclude {
		fmt.Fprintf(&b, "exclude %s %s\n", e.Path, e.Version)
	}
	for _, r := range theirs.Replace {
		to, version := r.New.Path, r.New.Version
		if version == "" { // a folder in their repository, which no module contains
			if comp.Staging == "" {
				continue
			}
			to, version = r.Old.Path, "v"+comp.Staging
		}
		fmt.Fprintf(&b, "replace %s => %s %s\n", strings.TrimSpace(r.Old.Path+" "+r.Old.Version), to, version)
	}
	return b.Bytes()
}

// stopAfter is how long an interrupted go command has to end before it is killed.
const stopAfter = 5 * time.Second

// goCommand runs the go command in dir and returns what it says and the processor time
// that it and its children took.
func goCommand(ctx context.Context, dir string, args ...string) ([]byte, time.Duration, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = environment(os.Environ())
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopAfter
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var used time.Duration
	if s := cmd.ProcessState; s != nil {
		used = s.UserTime() + s.SystemTime()
	}
	if err == nil {
		return stdout.Bytes(), used, nil
	}
	if ctx.Err() != nil {
		return nil, used, ctx.Err()
	}
	return nil, used, fmt.Errorf("go %s: %w\n%s%s", strings.Join(args[:min(2, len(args))], " "), err, stdout.Bytes(), stderr.Bytes())
}
