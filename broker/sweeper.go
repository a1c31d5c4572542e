package broker

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// maxLooks bounds how many instances are looked at at once.
const maxLooks = 512

// SweepReport says what one sweep did.
type SweepReport struct {
	Instances int
	Good      int
	Failed    map[Fault]int
	Took      time.Duration
	Err       error // why the sweep could not be done, or the finder's error
}

// Run sweeps every Config.SweepInterval, and soon after a call has found the store without its content, until
// ctx ends. Each report goes to done (nil: nowhere), which must not block.
func (s *Service) Run(ctx context.Context, done func(SweepReport)) {
	for {
		r := s.Sweep(ctx)
		if ctx.Err() != nil {
			return
		}
		if done != nil {
			done(r)
		}
		wait := s.cfg.SweepInterval - r.Took
		if s.rebuilding() || r.Err != nil {
			wait = s.cfg.SweepInterval / 4
		}
		next := time.NewTimer(max(wait, s.cfg.SweepInterval/10))
		select {
		case <-next.C:
		case <-ctx.Done():
		case <-s.kick:
			// Not at once after a sweep: callers may ask for one many times a second.
			pause(ctx, s.cfg.SweepInterval/10)
		}
		next.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// Sweep looks once at every instance that a finder lists or the store knows, and brings the
// directory up to date. A hung instance delays none of the others, as long as no more than maxLooks
// hang. Each instance takes at most the instance timeout for its look, and a few times that for what
// follows from it.
func (s *Service) Sweep(ctx context.Context) (r SweepReport) {
	begun := time.Now()
	r.Failed = map[Fault]int{}
	defer func() { r.Took = time.Since(begun) }()

	found, ferr := s.find(ctx)
	st, err := s.syncTerm(ctx, found)
	if err != nil {
		r.Err = err
		return r
	}
	f, err := s.Facts(ctx)
	if err != nil {
		r.Err = err
		return r
	}
	s.observe(f)

	all := s.union(f, found)
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		slots = make(chan struct{}, maxLooks)
	)
	for _, t := range all {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			fault := s.sweepOne(ctx, st, f, t)
			mu.Lock()
			defer mu.Unlock()
			if fault == "" {
				r.Good++
			} else {
				r.Failed[fault]++
			}
		})
	}
	wg.Wait()
	r.Instances = len(all)
	s.publishIdentified()
	aerr := s.afterLooks(ctx, st)
	if aerr == nil {
		s.swept.Store(true)
	}
	r.Err = errors.Join(ferr, aerr)
	s.changed.wake()
	return r
}

// find asks the finder. When it cannot tell, its last answer stands, but for what it said of nodes: no news is not
// bad news.
func (s *Service) find(ctx context.Context) (map[string]Found, error) {
	c, cancel := context.WithTimeout(ctx, s.cfg.InstanceTimeout)
	defer cancel()
	list, err := s.finder.Find(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		list = slices.Collect(maps.Values(s.found))
	} else {
		if len(list) == 0 && !s.noneFound {
			s.emit(FinderEmpty, "", "", 0, "no instance is listed; if there should be some, check --discover")
		}
		s.noneFound = len(list) == 0
	}
	s.found = make(map[string]Found, len(list))
	for _, f := range list {
		f.NodeDown = f.NodeDown && err == nil
		s.found[f.Name] = f
	}
	return s.found, err
}

// looked is one instance to be looked at.
type looked struct {
	Instance        // as the store knows it; only name, ordinal and address if it does not
	listed     bool // by this broker's finder
	rebuilding bool
}

func (s *Service) union(f Facts, found map[string]Found) []looked {
	list := make([]looked, 0, len(f.Instances)+len(found))
	known := make(map[string]bool, len(f.Instances))
	for _, in := range f.Instances {
		known[in.Name] = true
		l := looked{Instance: in, rebuilding: f.Phase == Rebuilding}
		if fd, ok := found[in.Name]; ok {
			l.listed, l.Address, l.Ordinal = true, fd.Address, fd.Ordinal
		}
		list = append(list, l)
	}
	for _, fd := range found {
		if !known[fd.Name] {
			list = append(list, looked{
				Instance: Instance{Name: fd.Name, Ordinal: fd.Ordinal, Address: fd.Address, LookBegin: Never, EmptySince: Never},
				listed:   true, rebuilding: f.Phase == Rebuilding,
			})
		}
	}
	return list
}

// afterLooks is what a sweep does once all instances have been looked at.
func (s *Service) afterLooks(ctx context.Context, st StoreState) error {
	read := time.Now()
	f, err := s.Facts(ctx)
	if err != nil {
		return err
	}
	if f.Term != st.Term {
		s.hurry()
		return nil
	}
	s.observe(f)
	errs := []error{s.judgeHealth(ctx, f, read)}
	if f.Phase == Rebuilding {
		after, err := s.store.Finish(ctx, st.Term, s.cfg.SweepInterval)
		errs = append(errs, err)
		if err == nil && after.Phase == Ready {
			s.emit(RebuildDone, "", "", 0, "")
		}
	}
	return errors.Join(errs...)
}
