package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"syscall"
)

// Process is the container of a pod: one running program.
type Process interface {
	Terminate() error      // asks it to end (SIGTERM)
	Kill() error           // ends it (SIGKILL)
	Done() <-chan struct{} // closed when it has ended
}

// Command is a Process that leads a process group of its own and dies with this process.
type Command struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// StartCommand starts a program whose output goes to out. It does not end with any context: end it
// with Terminate or Kill.
func StartCommand(out io.Writer, env []string, name string, args ...string) (*Command, error) {
	c := &Command{cmd: exec.Command(name, args...), done: make(chan struct{})}
	c.cmd.Stdout, c.cmd.Stderr, c.cmd.Env = out, out, env
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the kernel ends a child with the thread that started it
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			c.err = c.cmd.Wait()
			close(c.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return c, nil
}

// Pid is the process id, and that of its group.
func (c *Command) Pid() int { return c.cmd.Process.Pid }

// Done is closed when the program has ended.
func (c *Command) Done() <-chan struct{} { return c.done }

// Err is how the program ended; only after Done.
func (c *Command) Err() error { return c.err }

// Terminate sends SIGTERM to the group. A program that has ended is no error.
func (c *Command) Terminate() error { return c.signal(syscall.SIGTERM) }

// Kill sends SIGKILL to the group. A program that has ended is no error.
func (c *Command) Kill() error { return c.signal(syscall.SIGKILL) }

func (c *Command) signal(s syscall.Signal) error {
	select {
	case <-c.done: // its id may be somebody else's by now
		return nil
	default:
	}
	if err := syscall.Kill(-c.Pid(), s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("sending %v to group %d: %w", s, c.Pid(), err)
	}
	return nil
}

// Wait waits for the end of the program and kills it when ctx ends first. The error is that of the program, or
// of ctx.
func (c *Command) Wait(ctx context.Context) error {
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		err := c.Kill()
		<-c.done
		return errors.Join(ctx.Err(), err)
	}
}
