package scaler

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Options of a Scaler.
type Options struct {
	Source     Source                // required
	Cluster    Cluster               // nil: Kubernetes is not read
	Logger     *slog.Logger          // required
	Registerer prometheus.Registerer // nil: no metrics
	Interval   time.Duration         // between two looks at a pool; 0 = 1s
}

const (
	defaultInterval = time.Second
	// retireAfter is how long a planner outlives KEDA's last call. It is longer than
	// takeover, so that a pool does not change hands only because a planner has ended.
	retireAfter = 2 * takeover
	// maxPlanners bounds what strange callers can start.
	maxPlanners = 1000
)

// Scaler answers KEDA and plans, one planner for each ScaledObject that calls.
type Scaler struct {
	source   Source
	cluster  Cluster
	log      *slog.Logger
	interval time.Duration
	metrics  *metrics

	wake     chan struct{} // there are planners to be started
	stopping chan struct{} // closed when Run is about to end

	mu       sync.Mutex
	planners map[Ref]*planner
	waiting  []*planner // not yet started
}

// New returns a Scaler that plans as long as Run runs.
func New(o Options) (*Scaler, error) {
	s := &Scaler{
		source:   o.Source,
		cluster:  o.Cluster,
		log:      o.Logger.With("component", "scaler"),
		interval: o.Interval,
		wake:     make(chan struct{}, 1),
		stopping: make(chan struct{}),
		planners: map[Ref]*planner{},
	}
	if s.interval <= 0 {
		s.interval = defaultInterval
	}
	var err error
	s.metrics, err = newMetrics(o.Registerer, s)
	return s, err
}

// Run starts the planners that calls ask for, until ctx ends; then it ends the open streams, waits for
// the planners and returns. It is called once. Answers end ServeTTL after it at the latest.
func (s *Scaler) Run(ctx context.Context) {
	var planners sync.WaitGroup
	for {
		select {
		case <-ctx.Done():
			close(s.stopping)
			planners.Wait()
			return
		case <-s.wake:
			for _, p := range s.takeWaiting() {
				planners.Go(func() { s.plan(ctx, p) })
			}
		}
	}
}

func (s *Scaler) takeWaiting() []*planner {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.waiting
	s.waiting = nil
	return w
}

// called returns the planner of a ScaledObject and tells it what KEDA has just asked for.
func (s *Scaler) called(ref Ref, t Target) (*planner, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.planners[ref]
	if !ok {
		if len(s.planners) >= maxPlanners {
			return nil, errTooMany
		}
		p = newPlanner(ref, t, s.source, s.cluster)
		s.planners[ref] = p
		s.waiting = append(s.waiting, p)
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	p.ask(t)
	return p, nil
}

// retire forgets a planner that KEDA has not asked for long, and reports whether it did.
func (s *Scaler) retire(p *planner) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, silent := p.asked(); silent < retireAfter {
		return false
	}
	delete(s.planners, p.ref)
	return true
}

// plan looks at once and then at intervals, until ctx ends or KEDA has stopped asking.
func (s *Scaler) plan(ctx context.Context, p *planner) {
	defer p.end()
	log := s.log.With("namespace", p.ref.Namespace, "scaled_object", p.ref.Name)
	ticks := time.NewTicker(s.interval)
	defer ticks.Stop()
	trouble := ""
	for !s.retire(p) {
		outcome, err := p.look(ctx, log)
		s.metrics.looks.WithLabelValues(string(outcome)).Inc()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && err.Error() != trouble:
			trouble = err.Error()
			log.Warn("no new decision", "error", err)
		case err == nil && trouble != "":
			trouble = ""
			log.Info("decides again")
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}
