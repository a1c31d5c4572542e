package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roomscaler/roomscaler/test/lab/supervisor"
)

// dummy is a process that ends stubborn after SIGTERM, or at once when killed.
type dummy struct {
	stubborn time.Duration
	once     sync.Once
	done     chan struct{}
	got      []string
}

func (d *dummy) Terminate() error {
	d.got = append(d.got, "TERM")
	go func() {
		select {
		case <-time.After(d.stubborn):
			d.end()
		case <-d.done:
		}
	}()
	return nil
}
func (d *dummy) Kill() error           { d.got = append(d.got, "KILL"); d.end(); return nil }
func (d *dummy) Done() <-chan struct{} { return d.done }
func (d *dummy) end()                  { d.once.Do(func() { close(d.done) }) }

type set struct {
	*supervisor.Supervisor
	begin time.Time
	mu    sync.Mutex
	log   []string
	procs map[int]*dummy // by life
	// shutdown ends Run and waits for it; again is harmless.
	shutdown func()
}

func (s *set) events() []string {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.Clone(s.log)
	s.log = nil
	return list
}

// run starts a set of dummies in a bubble, and ends it with the test.
func run(t *testing.T, replicas int, stubborn time.Duration, c supervisor.Config) *set {
	t.Helper()
	s := &set{begin: time.Now(), procs: map[int]*dummy{}}
	c.Log = slog.New(slog.DiscardHandler)
	c.RestartDelay = time.Second
	if c.Grace == 0 {
		c.Grace = 30 * time.Second
	}
	c.Start = func(_ context.Context, p supervisor.Pod) (supervisor.Process, error) {
		d := &dummy{stubborn: stubborn, done: make(chan struct{})}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.procs[p.Life] = d
		return d, nil
	}
	c.OnEvent = func(e supervisor.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if e.Pod.Life > 0 {
			s.log = append(s.log, strings.TrimSpace(fmt.Sprintf("%gs %d/%d %s %s", time.Since(s.begin).Seconds(), e.Pod.Ordinal, e.Pod.Life, e.Pod.Phase, e.Pod.Cause)))
		}
	}
	s.Supervisor = supervisor.New(c, replicas)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { s.Run(ctx); close(over) }()
	s.shutdown = func() { cancel(); <-over }
	t.Cleanup(s.shutdown)
	synctest.Wait()
	return s
}

func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func want(t *testing.T, s *set, lines ...string) {
	t.Helper()
	if got := s.events(); !slices.Equal(got, lines) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
}

func replicas(t *testing.T, s *set, spec, status int) {
	t.Helper()
	synctest.Wait()
	if gotSpec, gotStatus := s.Replicas(); gotSpec != spec || gotStatus != status {
		t.Errorf("replicas: got spec %d and status %d, want %d and %d", gotSpec, gotStatus, spec, status)
	}
}

func TestSupervisor(t *testing.T) {
	hook := func(d time.Duration) func(context.Context, supervisor.Pod) error {
		return func(ctx context.Context, _ supervisor.Pod) error {
			select {
			case <-time.After(d):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	bubble(t, "all condemned pods end at once, the highest first, and count until they are gone", func(t *testing.T) {
		s := run(t, 4, 5*time.Second, supervisor.Config{})
		s.events()
		s.Scale(2)
		replicas(t, s, 2, 4)
		got := s.events()
		if len(got) < 2 || !strings.HasPrefix(got[0], "0s 3/") || !strings.HasPrefix(got[1], "0s 2/") {
			t.Errorf("got %q, want the deletion of 3 and then of 2 at once", got)
		}
		time.Sleep(6 * time.Second)
		replicas(t, s, 2, 2)
	})
	bubble(t, "preStop comes first, then SIGTERM", func(t *testing.T) {
		s := run(t, 1, time.Second, supervisor.Config{PreStop: hook(10 * time.Second)})
		s.Scale(0)
		time.Sleep(20 * time.Second)
		want(t, s, "0s 0/1 running", "0s 0/1 running scale-in", "0s 0/1 prestop scale-in", "10s 0/1 stopping scale-in", "11s 0/1 gone scale-in")
	})
	bubble(t, "SIGKILL comes when the grace period is over, the time of preStop included", func(t *testing.T) {
		s := run(t, 1, time.Hour, supervisor.Config{PreStop: hook(10 * time.Second)})
		s.Scale(0)
		time.Sleep(time.Minute)
		want(t, s, "0s 0/1 running", "0s 0/1 running scale-in", "0s 0/1 prestop scale-in", "10s 0/1 stopping scale-in", "30s 0/1 gone scale-in")
		if got := fmt.Sprint(s.procs[1].got); got != "[TERM KILL]" {
			t.Errorf("signals: got %s", got)
		}
	})
	bubble(t, "a preStop that takes the whole grace period leaves two seconds for SIGTERM", func(t *testing.T) {
		s := run(t, 1, time.Hour, supervisor.Config{PreStop: hook(time.Hour)})
		s.Scale(0)
		time.Sleep(time.Minute)
		want(t, s, "0s 0/1 running", "0s 0/1 running scale-in", "0s 0/1 prestop scale-in", "30s 0/1 stopping scale-in", "32s 0/1 gone scale-in")
	})
	bubble(t, "a failing preStop is followed by SIGTERM at once", func(t *testing.T) {
		s := run(t, 1, time.Second, supervisor.Config{PreStop: func(context.Context, supervisor.Pod) error { return errors.New("no such file") }})
		s.Scale(0)
		time.Sleep(time.Minute)
		want(t, s, "0s 0/1 running", "0s 0/1 running scale-in", "0s 0/1 prestop scale-in", "0s 0/1 stopping scale-in", "1s 0/1 gone scale-in")
	})
	bubble(t, "a terminating ordinal in range again is created only when gone, higher ones at once", func(t *testing.T) {
		s := run(t, 2, time.Second, supervisor.Config{PreStop: hook(10 * time.Second)})
		s.Scale(1)
		s.events()
		s.Scale(3)
		want(t, s, "0s 2/3 running")
		replicas(t, s, 3, 3)
		time.Sleep(time.Minute)
		want(t, s, "10s 1/2 stopping scale-in", "11s 1/2 gone scale-in", "11s 1/4 running")
		if p, ok := s.Life(2); !ok || p.Cause != supervisor.ScaleIn || p.Phase != supervisor.Gone {
			t.Errorf("the past life: got %+v %v", p, ok)
		}
	})
	bubble(t, "a container that ends by itself is started again in the same pod", func(t *testing.T) {
		s := run(t, 1, time.Second, supervisor.Config{PreStop: hook(time.Hour)})
		s.procs[1].end()
		time.Sleep(2 * time.Second)
		p, _ := s.Current(0)
		if p.Life != 1 || p.Restarts != 1 || p.Cause != "" {
			t.Errorf("got %+v, want the first life restarted once", p)
		}
	})
	bubble(t, "a deleted pod in range gets a new life", func(t *testing.T) {
		s := run(t, 1, time.Second, supervisor.Config{})
		s.events()
		if err := s.Delete(0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		want(t, s, "0s 0/1 running deleted", "0s 0/1 stopping deleted", "1s 0/1 gone deleted", "1s 0/2 running")
		if s.Delete(7) == nil {
			t.Error("deleting what is not there was no error")
		}
	})
	bubble(t, "a shutdown interrupts preStop and leaves no process", func(t *testing.T) {
		s := run(t, 2, time.Second, supervisor.Config{PreStop: hook(time.Hour), Grace: 2 * time.Hour})
		s.Scale(1)
		synctest.Wait()
		s.shutdown()
		for life, d := range s.procs {
			select {
			case <-d.done:
			default:
				t.Errorf("the process of life %d is left", life)
			}
		}
		if since := time.Since(s.begin); since > 5*time.Second {
			t.Errorf("it took %v", since)
		}
	})
}

func TestStartCommand(t *testing.T) {
	t.Run("the whole group ends", func(t *testing.T) {
		r, w := io.Pipe()
		c, err := supervisor.StartCommand(w, nil, "/bin/sh", "-c", "sleep 600 & echo up; wait")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Read(make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
		if err := c.Kill(); err != nil {
			t.Fatal(err)
		}
		<-c.Done() // comes only when sleep, which holds the output too, has ended
		if err := c.Terminate(); err != nil {
			t.Errorf("a signal to what has ended: %v", err)
		}
	})
	t.Run("a program that is not there is an error at once", func(t *testing.T) {
		if _, err := supervisor.StartCommand(io.Discard, nil, "/no/such/program"); err == nil {
			t.Error("no error")
		}
	})
}
