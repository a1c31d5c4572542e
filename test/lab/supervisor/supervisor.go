// Package supervisor runs processes as Kubernetes runs the pods of a StatefulSet (Parallel, OnDelete): the controller's
// rule of package statefulset, and the end of a pod as the kubelet makes it (preStop, SIGTERM, SIGKILL).
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/roomscaler/roomscaler/test/lab/statefulset"
)

// leastGrace is what SIGTERM gets even when preStop has used the whole grace period.
const leastGrace = 2 * time.Second

// Config says what the pods are.
type Config struct {
	// Start starts the container of a pod. It is called again when that ends by itself.
	Start func(ctx context.Context, p Pod) (Process, error)
	// PreStop runs before SIGTERM, within the grace period, which ends ctx. nil: none. Its error is logged and
	// otherwise ignored, as the kubelet does.
	PreStop func(ctx context.Context, p Pod) error
	// Grace is terminationGracePeriodSeconds.
	Grace time.Duration
	// RestartDelay is the wait before a container that ended by itself is started again.
	RestartDelay time.Duration
	// OnEvent is told of each change, in order, without any lock held. nil: nobody.
	OnEvent func(Event)
	Log     *slog.Logger
}

// Phase is how far a pod's life has come.
type Phase string

// The phases of a pod.
const (
	Running  Phase = "running"
	PreStop  Phase = "prestop" // deleted; the hook runs
	Stopping Phase = "stopping"
	Gone     Phase = "gone"
)

// Cause is why a pod ends.
type Cause string

// The causes of a pod's end.
const (
	ScaleIn  Cause = "scale-in" // its ordinal was at or above spec.replicas
	Deleted  Cause = "deleted"  // by hand
	Shutdown Cause = "shutdown" // the supervisor itself ends
)

// Pod is a copy of what there is to know of a pod.
type Pod struct {
	Ordinal  int
	Life     int // counts the pods of the set; one ordinal may have several lives
	Phase    Phase
	Cause    Cause // "" while it is not deleted
	Restarts int   // of the container
}

// Event is a change of a pod's phase, or of spec.replicas (Pod is zero).
type Event struct {
	At   time.Time
	Pod  Pod
	Spec int
}

type pod struct {
	Pod
	ended chan struct{} // closed when deleted
}

// Supervisor is a StatefulSet and its pods. Make one with New, then Run it.
type Supervisor struct {
	c Config

	mu     sync.Mutex
	spec   int
	lives  int
	pods   map[int]*pod // by ordinal
	past   map[int]Pod  // by life
	closed bool
	events []Event
	poked  chan struct{}
	spread sync.Mutex // holds OnEvent in order
	wg     sync.WaitGroup
}

// New returns a set of so many pods, none of which runs yet.
func New(c Config, replicas int) *Supervisor {
	return &Supervisor{c: c, spec: replicas, pods: map[int]*pod{}, past: map[int]Pod{}, poked: make(chan struct{}, 1)}
}

// Run reconciles until ctx ends; then it ends all pods (SIGTERM without preStop, SIGKILL after leastGrace), and
// returns when no process is left.
func (s *Supervisor) Run(ctx context.Context) {
	work := context.WithoutCancel(ctx)
	for {
		s.reconcile(work)
		select {
		case <-s.poked:
		case <-ctx.Done():
			s.mu.Lock()
			s.closed = true
			for _, p := range s.pods {
				s.end(p, Shutdown)
			}
			s.mu.Unlock()
			s.tell()
			s.wg.Wait()
			return
		}
	}
}

// Scale writes spec.replicas.
func (s *Supervisor) Scale(n int) {
	s.mu.Lock()
	if n != s.spec {
		s.spec = n
		s.events = append(s.events, Event{At: time.Now(), Spec: n})
	}
	s.mu.Unlock()
	s.tell()
	s.poke()
}

// Delete deletes a pod as kubectl would. It is an error if there is none.
func (s *Supervisor) Delete(ordinal int) error {
	s.mu.Lock()
	p := s.pods[ordinal]
	if p != nil {
		s.end(p, Deleted)
	}
	s.mu.Unlock()
	s.tell()
	if p == nil {
		return fmt.Errorf("deleting pod %d: there is none", ordinal)
	}
	return nil
}

// Replicas returns spec.replicas and status.replicas; the latter counts terminating pods.
func (s *Supervisor) Replicas() (spec, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spec, statefulset.StatusReplicas(s.seen())
}

// Pods returns the pods that are there, by ordinal.
func (s *Supervisor) Pods() []Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Pod, 0, len(s.pods))
	for _, p := range s.pods {
		list = append(list, p.Pod)
	}
	slices.SortFunc(list, func(a, b Pod) int { return a.Ordinal - b.Ordinal })
	return list
}

// Current returns the pod of an ordinal, and whether there is one.
func (s *Supervisor) Current(ordinal int) (Pod, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.pods[ordinal]; p != nil {
		return p.Pod, true
	}
	return Pod{}, false
}

// Life returns a pod by its life, present or past.
func (s *Supervisor) Life(life int) (Pod, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pods {
		if p.Life == life {
			return p.Pod, true
		}
	}
	p, ok := s.past[life]
	return p, ok
}

func (s *Supervisor) seen() []statefulset.Pod {
	list := make([]statefulset.Pod, 0, len(s.pods))
	for _, p := range s.pods {
		list = append(list, statefulset.Pod{Ordinal: p.Ordinal, Terminating: p.Cause != ""})
	}
	return list
}

func (s *Supervisor) reconcile(ctx context.Context) {
	s.mu.Lock()
	a := statefulset.Sync(s.spec, s.seen())
	for _, i := range a.Delete {
		s.end(s.pods[i], ScaleIn)
	}
	for _, i := range a.Create {
		s.lives++
		p := &pod{Pod: Pod{Ordinal: i, Life: s.lives, Phase: Running}, ended: make(chan struct{})}
		s.pods[i] = p
		s.note(p)
		s.wg.Go(func() { s.live(ctx, p) })
	}
	s.mu.Unlock()
	s.tell()
}

// end deletes a pod; with the lock held. It cannot be undone.
func (s *Supervisor) end(p *pod, why Cause) {
	if p.Cause != "" {
		return
	}
	p.Cause = why
	close(p.ended)
	s.note(p)
}

// live is the kubelet's part: it keeps the container running until the pod is deleted, then ends it.
func (s *Supervisor) live(ctx context.Context, p *pod) {
	defer func() {
		s.mu.Lock()
		p.Phase = Gone
		s.note(p)
		delete(s.pods, p.Ordinal)
		s.past[p.Life] = p.Pod
		s.mu.Unlock()
		s.tell()
		s.poke()
	}()
	for {
		proc, err := s.c.Start(ctx, s.copy(p))
		if err != nil {
			s.c.Log.Error("pod does not start", "pod", p.Ordinal, "error", err)
		} else {
			select {
			case <-p.ended:
				s.stop(ctx, p, proc)
				return
			case <-proc.Done():
				s.c.Log.Warn("container ended by itself", "pod", p.Ordinal)
			}
		}
		select {
		case <-p.ended:
			return
		case <-time.After(s.c.RestartDelay):
			s.mu.Lock()
			p.Restarts++
			s.note(p)
			s.mu.Unlock()
			s.tell()
		}
	}
}

func (s *Supervisor) stop(ctx context.Context, p *pod, proc Process) {
	begin := time.Now()
	if s.c.PreStop != nil && s.copy(p).Cause != Shutdown {
		s.phase(p, PreStop)
		ctx, cancel := context.WithTimeout(ctx, s.c.Grace)
		if err := s.preStop(ctx, p, proc); err != nil {
			s.c.Log.Warn("preStop failed", "pod", p.Ordinal, "error", err)
		}
		cancel()
	}
	s.phase(p, Stopping)
	grace := max(leastGrace, s.c.Grace-time.Since(begin))
	if s.shutting() {
		grace = leastGrace
	}
	if err := proc.Terminate(); err != nil {
		s.c.Log.Warn("SIGTERM failed", "pod", p.Ordinal, "error", err)
	}
	select {
	case <-proc.Done():
	case <-time.After(grace):
		if err := proc.Kill(); err != nil {
			s.c.Log.Warn("SIGKILL failed", "pod", p.Ordinal, "error", err)
		}
		<-proc.Done()
	}
}

// preStop runs the hook until it ends, the container ends, or the supervisor shuts down.
func (s *Supervisor) preStop(ctx context.Context, p *pod, proc Process) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	result := make(chan error, 1)
	go func() { result <- s.c.PreStop(ctx, s.copy(p)) }()
	check := time.NewTicker(100 * time.Millisecond)
	defer check.Stop()
	over := proc.Done()
	for {
		select {
		case err := <-result:
			return err
		case <-over:
			cancel(errors.New("the container has ended"))
			over = nil
		case <-check.C:
			if s.shutting() {
				cancel(errors.New("the supervisor shuts down"))
			}
		}
	}
}

func (s *Supervisor) shutting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *Supervisor) copy(p *pod) Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	return p.Pod
}

func (s *Supervisor) phase(p *pod, ph Phase) {
	s.mu.Lock()
	p.Phase = ph
	s.note(p)
	s.mu.Unlock()
	s.tell()
}

// note queues an event; with the lock held. tell hands it out.
func (s *Supervisor) note(p *pod) {
	s.events = append(s.events, Event{At: time.Now(), Pod: p.Pod, Spec: s.spec})
}

func (s *Supervisor) tell() {
	s.spread.Lock()
	defer s.spread.Unlock()
	s.mu.Lock()
	list := s.events
	s.events = nil
	s.mu.Unlock()
	if s.c.OnEvent == nil {
		return
	}
	for _, e := range list {
		s.c.OnEvent(e)
	}
}

func (s *Supervisor) poke() {
	select {
	case s.poked <- struct{}{}:
	default:
	}
}
