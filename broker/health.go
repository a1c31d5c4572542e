package broker

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The breaker: so many failed looks in a row, by all brokers together, make an instance suspect; so many
// good ones by one broker end that, and twice as many after each relapse.
const (
	suspectAfter  = 3
	recoverAfter  = 2
	recoverAtMost = 16
)

// forgetAfter is how many sweeps without a finder's listing make an instance a thing of the past, if
// nothing is on it.
const forgetAfter = 3

// judgeHealth marks what has stopped answering, unmarks what answers again, fences what is gone
// and forgets what is over. Each step is conditional in the store; of several brokers the first does it. It goes no further once
// an instance timeout has passed since the facts were read: a process that was stopped meanwhile must not
// fence what has come back since.
func (s *Service) judgeHealth(ctx context.Context, f Facts, read time.Time) error {
	var errs []error
	for _, in := range f.Instances {
		if time.Since(read) > s.cfg.InstanceTimeout {
			break
		}
		_, suspect := in.Mark(OwnerBroker)
		unlisted := f.Now.Since(in.ListedAt)
		away := max(unlisted, s.nodeDown(in.Name, f.Now))
		switch {
		case in.Failures >= suspectAfter && unlisted > forgetAfter*s.cfg.SweepInterval && in.Pins == 0 &&
			(in.LookBegin == Never || in.Seal != nil || in.Lost):
			err := s.store.Forget(ctx, f.Term, in.Name)
			if err == nil {
				s.emit(InstanceForgotten, in.Name, "", 0, "")
			}
			errs = append(errs, ignoreStale(err))
		case !in.Lost && in.Seal == nil && in.LookBegin != Never && in.Failures > 0 &&
			away > s.cfg.LostAfter && f.Now.Since(in.FaultSince) > s.cfg.LostAfter:
			_, err := s.Lost(ctx, in.Name, in.Incarnation)
			errs = append(errs, ignoreStale(err))
		case !suspect && in.Failures >= suspectAfter && in.LookBegin != Never:
			_, err := s.store.Mark(ctx, f.Term, in.Name, MarkRequest{Owner: OwnerBroker, Reason: string(in.Fault)})
			if err == nil {
				s.relapse(in.Name)
				s.emit(InstanceSuspect, in.Name, "", 0, fmt.Sprintf("%s: %s", in.Fault, in.Advice))
			}
			errs = append(errs, ignoreStale(err))
		case suspect && in.Failures == 0 && s.steady(in.Name):
			_, err := s.store.Unmark(ctx, f.Term, in.Name, OwnerBroker)
			if err == nil {
				s.emit(InstanceRecovered, in.Name, "", 0, "")
			}
			errs = append(errs, ignoreStale(err))
		}
	}
	return errors.Join(errs...)
}

// ignoreStale drops errors that say another broker was quicker or the facts have moved on.
func ignoreStale(err error) error {
	if errors.Is(err, ErrStale) || errors.Is(err, ErrInstanceNotFound) || errors.Is(err, ErrReleased) || isTermError(err) || errors.Is(err, ErrRebuilding) {
		return nil
	}
	return err
}

func (s *Service) relapse(instance string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.memory[instance]
	m.goodRow, m.needRow = 0, min(max(recoverAfter, 2*m.needRow), recoverAtMost)
	s.memory[instance] = m
}

func (s *Service) steady(instance string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.memory[instance]
	return m.goodRow >= max(recoverAfter, m.needRow)
}
