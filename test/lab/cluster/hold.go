package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A control plane that goes on after the command that began it has a holder: a process whose
// children its programs are. Whether it lives is told by a lock, which ends with it, so that the id in
// the lock's file is never somebody else's.

const holdEvery = 100 * time.Millisecond

// KubeconfigPath is where the kubeconfig of the control plane that [Up] starts from this cache is.
func (c Cache) KubeconfigPath() string { return filepath.Join(c.upDir(), "admin.kubeconfig") }

func (c Cache) upDir() string  { return filepath.Join(c.dir, "up") }
func (c Cache) upLock() string { return filepath.Join(c.dir, "up.lock") }
func (c Cache) upDone() string { return filepath.Join(c.upDir(), "ready") }

// Up builds what is missing and starts a control plane that goes on until [Down], unless there is one already. hold is the
// command line that calls [Hold] with the same cache.
func Up(ctx context.Context, cache Cache, progress io.Writer, hold []string) error {
	if err := Build(ctx, cache, progress, ControlPlaneComponents()...); err != nil {
		return err
	}
	if _, held, err := cache.holder(); err != nil || held {
		return err
	}
	if err := os.RemoveAll(cache.upDir()); err != nil {
		return fmt.Errorf("clearing the folder of the last control plane: %w", err)
	}
	if err := os.MkdirAll(cache.upDir(), 0o700); err != nil {
		return fmt.Errorf("making the folder of the control plane: %w", err)
	}
	log, err := os.Create(filepath.Join(cache.upDir(), "holder.log"))
	if err != nil {
		return fmt.Errorf("making the log of the control plane's holder: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(hold[0], hold[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the control plane's holder: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	err = poll(ctx, func() (bool, error) {
		select {
		case err := <-ended:
			return false, fmt.Errorf("the control plane's holder has ended (%v): %s", err, tail(log.Name()))
		default:
		}
		_, err := os.Stat(cache.upDone())
		return err == nil, nil
	})
	if ctx.Err() != nil { // nobody waits for what would come of it
		return errors.Join(err, cmd.Process.Signal(syscall.SIGTERM), <-ended)
	}
	return err
}

// Hold runs the control plane of [Up] until ctx ends or one of its programs does. All pods count as running.
func Hold(ctx context.Context, cache Cache, hpaSync time.Duration) error {
	f, err := os.OpenFile(cache.upLock(), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("opening the lock of the control plane: %w", err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("another control plane runs from this cache: %w", err)
	}
	if err := errors.Join(f.Truncate(0), writeAll(f, strconv.Itoa(os.Getpid()))); err != nil {
		return fmt.Errorf("writing who holds the control plane: %w", err)
	}
	plane, err := StartControlPlane(ctx, cache, Options{Dir: cache.upDir(), HPASync: hpaSync})
	if err != nil {
		return err
	}
	pods, stop := context.WithCancel(context.WithoutCancel(ctx))
	declared := make(chan error, 1)
	go func() { declared <- plane.RunPods(pods, "", func([]string) {}) }()
	err = os.WriteFile(cache.upDone(), nil, 0o600)
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-plane.Failed():
		}
	}
	stop()
	return errors.Join(err, <-declared, plane.Stop())
}

func writeAll(w io.Writer, s string) error {
	_, err := io.WriteString(w, s)
	return err
}

// Down ends the control plane of [Up] and removes what it has left. Where there is none, that is all.
func Down(ctx context.Context, cache Cache) error {
	pid, held, err := cache.holder()
	if err != nil {
		return err
	}
	if held {
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
			return fmt.Errorf("ending the control plane's holder %d: %w", pid, err)
		}
		err := poll(ctx, func() (bool, error) {
			_, held, err := cache.holder()
			return !held, err
		})
		if err != nil {
			return fmt.Errorf("waiting for the control plane's end: %w", err)
		}
	}
	if err := os.RemoveAll(cache.upDir()); err != nil {
		return fmt.Errorf("removing the control plane's folder: %w", err)
	}
	return nil
}

// holder returns the process that holds a control plane, if one does.
func (c Cache) holder() (pid int, held bool, err error) {
	f, err := os.Open(c.upLock())
	switch {
	case errors.Is(err, os.ErrNotExist):
		return 0, false, nil
	case err != nil:
		return 0, false, fmt.Errorf("opening the lock of the control plane: %w", err)
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	switch {
	case err == nil:
		return 0, false, nil
	case !errors.Is(err, syscall.EWOULDBLOCK):
		return 0, false, fmt.Errorf("trying the lock of the control plane: %w", err)
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return 0, false, fmt.Errorf("reading who holds the control plane: %w", err)
	}
	pid, err = strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0, false, fmt.Errorf("reading who holds the control plane: %w", err)
	}
	return pid, true, nil
}

// poll waits until done says so or fails, or ctx ends.
func poll(ctx context.Context, done func() (bool, error)) error {
	tick := time.NewTicker(holdEvery)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
