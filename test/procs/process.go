package procs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// ErrNotInstalled says that a server's program is not on this machine.
var ErrNotInstalled = errors.New("not installed")

// errPortTaken ends a wait: the server runs, but without a listener that it should have.
var errPortTaken = errors.New("a port was taken meanwhile")

// startTimeout bounds a start when the caller's context does not: far more than a
// start takes on a loaded machine.
const startTimeout = 60 * time.Second

// Process is a running child. All methods may be called from any goroutine, also
// after its end.
type Process struct {
	pid     int
	logFile string
	ended   chan struct{}
	err     error  // of its end; read after ended is closed
	cleanup func() // runs once, before ended is closed
}

// start runs a program with its output in logFile. A child is killed with the
// thread that started it, so that thread is kept until the child has ended.
func start(logFile string, cleanup func(), name string, args ...string) (*Process, error) {
	out, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", name, err)
	}
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Dir = filepath.Dir(logFile) // what a server drops where it stands goes with its folder
	cmd.SysProcAttr = childAttr()
	p := &Process{logFile: logFile, ended: make(chan struct{}), cleanup: cleanup}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		out.Close()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		p.cleanup()
		close(p.ended)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// Pid returns the process id.
func (p *Process) Pid() int { return p.pid }

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Wait blocks until the process has ended and returns how, as [exec.Cmd.Wait] does.
func (p *Process) Wait() error {
	<-p.ended
	return p.err
}

// Kill ends the process at once (SIGKILL) and waits for its end.
func (p *Process) Kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// Stop asks the process to end (SIGTERM), kills it when it has not within the grace, and waits for its
// end. It reports whether the process ended by itself.
func (p *Process) Stop(grace time.Duration) bool {
	p.signal(syscall.SIGTERM)
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-p.ended:
		return true
	case <-t.C:
		p.Kill()
		return false
	}
}

// Pause stops the process where it is (SIGSTOP): it keeps its connections and answers nothing. On Linux it returns once all
// threads stand still.
func (p *Process) Pause() {
	p.signal(syscall.SIGSTOP)
	p.awaitStopped()
}

// Continue ends a pause.
func (p *Process) Continue() { p.signal(syscall.SIGCONT) }

// signal sends to a live child only: the id of one that has ended may be another's.
func (p *Process) signal(s syscall.Signal) {
	select {
	case <-p.ended:
	default:
		syscall.Kill(p.pid, s)
	}
}

// LogTail returns the last bytes of what the process has printed.
func (p *Process) LogTail(n int) string {
	b, err := os.ReadFile(p.logFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b[max(0, len(b)-n):]))
}

// await polls ready until it holds, the process ends or the context does.
func (p *Process) await(ctx context.Context, what string, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errPortTaken):
			return fmt.Errorf("%s runs without a listener: %w: %s", what, err, p.LogTail(1000))
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended while it was starting (%v): %s", what, p.err, p.LogTail(1000))
		case <-ctx.Done():
			return fmt.Errorf("%s did not become ready (%w): %s", what, err, p.LogTail(1000))
		case <-tick.C:
		}
	}
}

// FreePort returns a TCP port that nothing listens on at ip just now.
func FreePort(ip string) (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// fillPorts gives a free port to each that is 0, no two the same.
func fillPorts(ip string, ports ...*int) error {
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	for _, p := range ports {
		if *p != 0 {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
		if err != nil {
			return fmt.Errorf("find a free port: %w", err)
		}
		held = append(held, l)
		*p = l.Addr().(*net.TCPAddr).Port
	}
	return nil
}

func find(program, pkg string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("%s is %w: run \"apt-get install %s\"", program, ErrNotInstalled, pkg)
	}
	return path, nil
}
