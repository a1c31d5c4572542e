package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// stopTimeout bounds the whole of a process's end, the delay before it aside.
const stopTimeout = 20 * time.Second

// lifecycle runs the parts of a process and ends them in the order in which their ends were added.
type lifecycle struct {
	log    *slog.Logger
	failed chan error // a server that ended by itself
	steps  []step
}

type step struct {
	name string
	do   func(context.Context) error
}

func newLifecycle(log *slog.Logger) *lifecycle {
	return &lifecycle{log: log, failed: make(chan error, 8)}
}

// then adds a step to the end.
func (l *lifecycle) then(name string, do func(context.Context) error) {
	l.steps = append(l.steps, step{name, do})
}

// loop runs f until the returned stop is called, which waits for it.
func (l *lifecycle) loop(f func(context.Context)) (stop func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(ctx)
	}()
	return func(bound context.Context) error {
		cancel()
		select {
		case <-done:
			return nil
		case <-bound.Done():
			return bound.Err()
		}
	}
}

// serve runs a server that returns nil or http.ErrServerClosed when it is stopped.
func (l *lifecycle) serve(component, address string, f func() error) {
	l.log.Info("listening", "component", component, "address", address)
	go func() {
		if err := f(); err != nil && !errors.Is(err, http.ErrServerClosed) {
			l.failed <- fmt.Errorf("%s: %w", component, err)
		}
	}()
}

// run waits for ctx to end or a server to fail, then does the steps. A step that fails does not keep the next from being done.
func (l *lifecycle) run(ctx context.Context, delay time.Duration, unready func()) error {
	var errs []error
	select {
	case <-ctx.Done():
		l.log.Info("stopping")
		unready()
		wait := time.NewTimer(delay)
		defer wait.Stop()
		select {
		case <-wait.C:
		case err := <-l.failed:
			errs = append(errs, err)
		}
	case err := <-l.failed:
		errs = append(errs, err)
		unready()
	}
	return errors.Join(append(errs, l.end(context.WithoutCancel(ctx)))...)
}

// end does the steps.
func (l *lifecycle) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	var errs []error
	for _, s := range l.steps {
		if err := s.do(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.name, err))
		}
	}
	return errors.Join(errs...)
}

// listen opens the listener of a flag.
func listen(ctx context.Context, flag, address string) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, wrong(flag, "%q is no HOST:PORT; give one such as 127.0.0.1:8080 or :8080", clip(address))
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, &exitError{code: exitFailure, err: fmt.Errorf("--%s: %w; give another address or port", flag, err)}
	}
	return l, nil
}

// httpServer bounds everything that a caller could draw out. Drains are held for up to a minute.
func httpServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 90 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 32 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}
