package broker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// DrainResult says how far a drain has come.
type DrainResult string

// The results of a drain.
const (
	DrainEmpty   DrainResult = "empty"   // on data from a look that began after the mark
	DrainExpired DrainResult = "expired" // its owner's deadline has passed and it is not empty
	DrainWaiting DrainResult = "waiting"
)

// DrainStatus is one owner's drain of one instance.
type DrainStatus struct {
	Result   DrainResult
	Owner    Owner
	Instance Instance
	Now      PoolTime
}

// Drain sets or repeats an owner's mark; see Store.Mark. Once it has returned, no room comes to the
// instance while any mark is there.
func (s *Service) Drain(ctx context.Context, instance string, m MarkRequest) (DrainStatus, error) {
	if err := checkOwner(m.Owner); err != nil {
		return DrainStatus{}, err
	}
	if m.Grace < 0 {
		return DrainStatus{}, &InvalidError{"grace", "is negative; leave it out for no deadline"}
	}
	term, err := s.knownTerm()
	if err != nil {
		return DrainStatus{}, err
	}
	in, err := s.store.Mark(ctx, term, instance, m)
	if err != nil {
		return DrainStatus{}, s.notice(err)
	}
	st, err := s.store.State(ctx)
	if err != nil {
		return DrainStatus{}, s.notice(err)
	}
	s.rememberMarks(in, st.Now)
	mark, _ := in.Mark(m.Owner)
	return DrainStatus{drainResult(in, mark, st.Now), m.Owner, in, st.Now}, nil
}

// DrainStatus returns the state of an owner's drain. It holds the answer for at most wait until the result is
// another than DrainWaiting. ErrMarkNotFound when the owner has no mark there (any more): a new life of the
// instance has none.
func (s *Service) DrainStatus(ctx context.Context, instance string, owner Owner, wait time.Duration) (DrainStatus, error) {
	if err := checkOwner(owner); err != nil {
		return DrainStatus{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, wait+s.cfg.InstanceTimeout)
	defer cancel()
	end := time.After(wait)
	for {
		next := s.changed.wait()
		in, now, err := s.Instance(ctx, instance)
		if err != nil {
			return DrainStatus{}, err
		}
		m, ok := in.Mark(owner)
		if !ok {
			return DrainStatus{}, ErrMarkNotFound
		}
		st := DrainStatus{drainResult(in, m, now), owner, in, now}
		if st.Result != DrainWaiting || wait <= 0 {
			return st, nil
		}
		// A deadline passes between two sweeps too.
		poll := time.NewTimer(time.Second)
		select {
		case <-next:
		case <-poll.C:
		case <-end:
			wait = 0
		case <-ctx.Done():
		}
		poll.Stop()
		if ctx.Err() != nil {
			return st, nil
		}
	}
}

// Uncordon removes an owner's mark; see Store.Unmark.
func (s *Service) Uncordon(ctx context.Context, instance string, owner Owner) (Instance, error) {
	if err := checkOwner(owner); err != nil {
		return Instance{}, err
	}
	term, err := s.knownTerm()
	if err != nil {
		return Instance{}, err
	}
	in, err := s.store.Unmark(ctx, term, instance, owner)
	if err != nil {
		return Instance{}, s.notice(err)
	}
	st, err := s.store.State(ctx)
	if err != nil {
		return in, s.notice(err)
	}
	s.rememberMarks(in, st.Now)
	return in, nil
}

// Lost fences an incarnation that will not come back ("" = the present one) and returns the pins that ended.
func (s *Service) Lost(ctx context.Context, instance, incarnation string) ([]Pin, error) {
	term, err := s.knownTerm()
	if err != nil {
		return nil, err
	}
	if incarnation == "" {
		in, _, err := s.Instance(ctx, instance)
		if err != nil {
			return nil, err
		}
		incarnation = in.Incarnation
	}
	ended, err := s.store.Lost(ctx, term, instance, incarnation)
	if err != nil {
		return nil, s.notice(err)
	}
	s.emit(InstanceLost, instance, "", 0, fmt.Sprintf("%d rooms ended", len(ended)))
	for _, p := range ended {
		s.emit(RoomEnded, instance, p.Room, p.Epoch, string(CauseLost))
	}
	return ended, nil
}

// drainResult judges by a look that began after the mark: an older one may have missed who came in
// between. Unknown is not empty.
func drainResult(in Instance, m Mark, now PoolTime) DrainResult {
	if in.Pins == 0 && in.EmptySince != Never && in.LookBegin > m.Since && in.Fault == "" {
		return DrainEmpty
	}
	if left, ok := m.Remaining(now); ok && left == 0 {
		return DrainExpired
	}
	return DrainWaiting
}

func checkOwner(o Owner) error {
	if !slices.Contains(Owners, o) {
		return &InvalidError{"owner", fmt.Sprintf("%q is none of scaler, hook, rollout, operator, broker", clip(string(o)))}
	}
	return nil
}

// notifier wakes all who wait for the next event.
type notifier struct {
	mu sync.Mutex
	ch chan struct{}
}

func (n *notifier) wait() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ch == nil {
		n.ch = make(chan struct{})
	}
	return n.ch
}

func (n *notifier) wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ch != nil {
		close(n.ch)
		n.ch = nil
	}
}
