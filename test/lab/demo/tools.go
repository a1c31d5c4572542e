package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// tools is what there is to run.
type tools struct {
	program string // the product
	self    string // this program, for the simulated server
	media   Media  // Real or Simulated
	redis   bool
	janus   string // how the media servers are named in the report
}

// prepare finds or installs what the demonstration needs, builds the product, and says what it does.
func prepare(ctx context.Context, o Options, dir string, say func(string, ...any)) (tools, error) {
	t := tools{program: o.Program, media: o.Media}
	var err error
	if t.self, err = os.Executable(); err != nil {
		return t, fmt.Errorf("finding this program: %w", err)
	}
	if err := t.servers(ctx, o, dir, say); err != nil {
		return t, err
	}
	if t.program != "" {
		if t.program, err = exec.LookPath(t.program); err != nil {
			return t, fmt.Errorf("--roomscaler: %w; give the path of a built one", err)
		}
		if t.program, err = filepath.Abs(t.program); err != nil {
			return t, fmt.Errorf("--roomscaler: %w", err)
		}
		return t, nil
	}
	root, err := moduleRoot()
	if err != nil {
		return t, err
	}
	say("building roomscaler")
	t.program = filepath.Join(dir, "roomscaler")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", t.program, "./cmd/roomscaler")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return t, fmt.Errorf("building roomscaler: %w\n%s", err, strings.TrimSpace(string(out)))
	}
	return t, nil
}

func installed(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// servers settles which media servers and which store run.
func (t *tools) servers(ctx context.Context, o Options, dir string, say func(string, ...any)) error {
	var missing []string
	if o.Media != Simulated && !installed("janus") {
		missing = append(missing, "janus")
	}
	if !installed("redis-server") {
		missing = append(missing, "redis-server")
	}
	if len(missing) > 0 {
		command := "apt-get install -y --no-install-recommends " + strings.Join(missing, " ")
		if os.Geteuid() == 0 && installed("apt-get") {
			say("installing what is missing: %s", command)
			if err := install(ctx, missing, filepath.Join(dir, "apt.log")); err != nil {
				say("that did not work: %v", err)
			}
		} else {
			say("not installed: %s; as root run: %s", strings.Join(missing, ", "), command)
		}
	}
	t.redis = installed("redis-server")
	if !t.redis {
		say("no redis-server: one broker with the memory store instead of two on Redis")
	}
	switch {
	case o.Media == Simulated:
		t.media = Simulated
	case installed("janus"):
		t.media = Real
	case o.Media == Real:
		return errors.New("--janus real: janus is not installed; install it or use --janus simulated")
	default:
		t.media = Simulated
		say("no janus: the simulated media server takes its place")
	}
	t.janus = "Simulated media servers"
	if t.media == Real {
		t.janus = "Real Janus servers"
	}
	return nil
}

func install(ctx context.Context, packages []string, log string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	out, err := os.Create(log)
	if err != nil {
		return err
	}
	defer out.Close()
	for _, args := range [][]string{{"update"}, append([]string{"install", "-y", "--no-install-recommends"}, packages...)} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Run(); err != nil && args[0] != "update" { // what is known already may do
			return fmt.Errorf("apt-get %s: %w (see %s)", args[0], err, log)
		}
	}
	return nil
}

// moduleRoot is the folder of the product's go.mod, at or above the working folder.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(b), "module github.com/roomscaler/roomscaler\n") {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("the source of roomscaler is not around the working folder; run this in a clone of the repository or give --roomscaler")
		}
		dir = up
	}
}

// tail is the end of a log, for an error.
func tail(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	const most = 1500
	if s, err := f.Stat(); err == nil && s.Size() > most {
		if _, err := f.Seek(-most, io.SeekEnd); err != nil {
			return ""
		}
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
