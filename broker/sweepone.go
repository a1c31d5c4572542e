package broker

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
)

// maxFollow bounds how many calls to an instance one sweep makes besides the look: what is left is for the next.
const maxFollow = 32

// maxAsk is the same for rooms that are asked for by name: that a room is not there is one short answer, and after a restart in
// which a create landed before the first look, all rooms of the life before are asked for.
const maxAsk = 1024

// sweepOne looks at one instance and records what that means. It returns the look's fault, "" for a good one. What
// cannot be written is left for the next sweep.
func (s *Service) sweepOne(ctx context.Context, st StoreState, f Facts, t looked) Fault {
	s.mu.Lock()
	m := s.memory[t.Name]
	s.mu.Unlock()

	draining := len(t.Marks) > 0
	viewers := m.viewersDue || draining && t.Pins == 0 && s.EmptyWhen(f) == EmptyRooms
	begin := f.Now
	c, cancel := context.WithTimeout(ctx, s.cfg.InstanceTimeout)
	look, err := s.backend.Look(c, s.target(t.Instance), LookOptions{Viewers: viewers})
	cancel()
	if err != nil {
		return s.failed(ctx, st.Term, t, begin, err)
	}

	look, strays := look.withoutStrays(t.Name)

	// What follows from a look may take as long again, together.
	c, cancel = context.WithTimeout(ctx, s.cfg.InstanceTimeout)
	defer cancel()
	pins, err := s.store.Pins(c, t.Name, "", 0)
	if err != nil {
		return ""
	}
	switch again, err := s.identify(c, st.Term, &t, begin, pins, look); {
	case err != nil:
		return s.failed(ctx, st.Term, t, begin, err)
	case again:
		return ""
	}
	if recorded := f.incarnation(t.Name); t.Incarnation != recorded {
		pins = nil // those of the life before have ended
		if recorded == "" {
			// The store must know the incarnation before it takes rooms of it.
			s.record(c, st.Term, report(t, begin, look))
		}
	}
	s.apply(c, st.Term, f, t, begin, pins, look)
	at := s.target(t.Instance)
	at.StringIDs = look.StringIDs
	s.clearStrays(c, at, strays)
	return ""
}

func (f Facts) incarnation(name string) string {
	in, _ := f.instance(name)
	return in.Incarnation
}

func strangerAdvice(t looked, l Look) string {
	if l.Marker == nil {
		return ""
	}
	return fmt.Sprintf("%s shows the marker of %s in pool %s; check what the finder's address leads to, or restart that server if it has been renamed", t.Address, l.Marker.Instance, l.Marker.Pool)
}

// failed records a failed look. In a rebuild it also tells what this broker remembers of the instance.
func (s *Service) failed(ctx context.Context, term Term, t looked, begin PoolTime, err error) Fault {
	r := LookReport{Instance: t.Name, Ordinal: t.Ordinal, Address: t.Address, Listed: t.listed, Begin: begin, Fault: FaultOther}
	var fe *FaultError
	switch {
	case errors.As(err, &fe):
		r.Fault, r.Advice = fe.Fault, fe.Advice
	case errors.Is(err, context.DeadlineExceeded):
		r.Fault = FaultTimeout
	}
	if t.rebuilding {
		// A refused connection means that the admin listener's process is not there, and with it no
		// room. That is believed only of an instance that nobody remembers alive.
		r.Answered = r.Fault == FaultRefused && t.LookBegin == Never && t.Incarnation == ""
		if known, err := s.recall(ctx, term, t.Instance); err == nil && known {
			r.Answered = true
		}
	}
	s.mu.Lock()
	m := s.memory[t.Name]
	changed := m.fault != r.Fault
	m.goodRow, m.fault = 0, r.Fault
	s.memory[t.Name] = m
	s.mu.Unlock()
	if changed {
		s.emit(InstanceFault, t.Name, "", 0, fmt.Sprintf("%s: %s", r.Fault, r.Advice))
	}
	s.record(ctx, term, r)
	return r.Fault
}

func (s *Service) record(ctx context.Context, term Term, r LookReport) {
	if _, err := s.store.Record(ctx, term, r); isTermError(err) {
		s.hurry()
	}
}

// identify settles whose look it is, and gives the instance a marker where it needs one. It sets
// t.Incarnation. again: nothing can be said before the next look. An error, a *FaultError, is that of the whole look: an
// instance that shows another's marker or takes none cannot be used, and the operator has to be told.
func (s *Service) identify(ctx context.Context, term Term, t *looked, begin PoolTime, pins []Pin, look Look) (again bool, err error) {
	at := s.target(t.Instance)
	at.StringIDs = look.StringIDs
	switch Identify(s.cfg.Pool, t.Name, t.Incarnation, begin, pins, look) {
	case SameLife:
		return false, nil
	case FirstLife:
		t.Incarnation = look.Marker.Incarnation
		return false, nil
	case Stranger:
		return false, &FaultError{Fault: FaultStranger, Advice: strangerAdvice(*t, look)}
	case Unclear:
		return true, nil
	case Replant:
		_, err := s.backend.Plant(ctx, at, t.Incarnation)
		return false, err
	case NewLife:
		return s.rebirth(ctx, term, t, look.Marker.Incarnation) != nil, nil
	case Unnamed:
		nonce := make([]byte, 12)
		_, _ = rand.Read(nonce) // never fails (crypto/rand)
		found, err := s.backend.Plant(ctx, at, hex.EncodeToString(nonce))
		if err != nil {
			return false, err
		}
		if t.Incarnation == "" {
			t.Incarnation = found
			return false, nil
		}
		return s.rebirth(ctx, term, t, found) != nil, nil
	}
	return true, nil
}

// rebirth ends the life before in the directory.
func (s *Service) rebirth(ctx context.Context, term Term, t *looked, to string) error {
	ended, err := s.store.Rebirth(ctx, term, t.Name, t.Incarnation, to)
	if err != nil {
		return err
	}
	s.emit(InstanceReborn, t.Name, "", 0, fmt.Sprintf("%d rooms ended", len(ended)))
	for _, p := range ended {
		s.emit(RoomEnded, t.Name, p.Room, p.Epoch, string(CauseReborn))
	}
	t.Incarnation, t.Lost, t.Marks = to, false, nil
	return nil
}

// apply brings the directory in line with a good look, then records it.
func (s *Service) apply(ctx context.Context, term Term, f Facts, t looked, begin PoolTime, pins []Pin, look Look) {
	plan := Reconcile(ReconcileInput{
		Begin: begin, Now: f.Now, Pins: pins, Look: look,
		CreateGrace: 3 * s.cfg.InstanceTimeout, ReserveFor: s.cfg.RoomTTL,
	})
	for _, p := range plan.Confirm {
		_, _ = s.store.Confirm(ctx, term, p.Room, p.Epoch) // stale: its end was quicker
	}
	at := s.target(t.Instance)
	at.StringIDs = look.StringIDs
	s.endMissing(ctx, term, at, begin, plan.Missing)
	adopted := s.adopt(ctx, term, t, at, plan.Adopt, look) == nil
	s.expire(ctx, term, f, t, at, pins, look)

	vacant := look.Sessions == 0
	if s.EmptyWhen(f) == EmptyRooms {
		vacant = look.Handles == 0
	}
	if t.Lost && vacant && len(look.Rooms) == 0 {
		// A fenced incarnation that has come back and has nobody left may begin anew.
		_ = s.rebirth(ctx, term, &t, t.Incarnation)
	}
	r := report(t, begin, look)
	r.Vacant, r.Reserve, r.Answered = vacant, plan.Reserve, look.Complete && adopted
	// A look counts, even if what followed from it has taken all the time there was.
	c, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.InstanceTimeout)
	defer cancel()
	s.record(c, term, r)
	s.rememberLook(t, look)
}

// report is what a good look says by itself.
func report(t looked, begin PoolTime, look Look) LookReport {
	people := look.OtherPeople
	for _, r := range look.Rooms {
		people += r.Publishers
	}
	return LookReport{
		Instance: t.Name, Ordinal: t.Ordinal, Address: t.Address, Listed: t.listed, Begin: begin,
		Advice: look.Advice, Incarnation: t.Incarnation, Sessions: look.Sessions, Participants: people,
		Rooms: len(look.Rooms) + look.OtherRooms, StringIDs: look.StringIDs,
	}
}

// endMissing ends pins whose room was not in the look, after asking for each by name.
func (s *Service) endMissing(ctx context.Context, term Term, at Target, begin PoolTime, missing []Pin) {
	for i, p := range missing {
		if i == maxAsk {
			return
		}
		o, err := s.backend.Inspect(ctx, at, RoomRef{p.Room, p.Epoch})
		if err != nil || o.Exists {
			continue
		}
		if _, err := s.store.End(ctx, term, EndRequest{Room: p.Room, Epoch: p.Epoch, Cause: CauseGone, Begin: begin}); err == nil {
			s.emit(RoomEnded, p.Instance, p.Room, p.Epoch, string(CauseGone))
		}
	}
}

// adopt enters rooms without a pin, and clears away those that have ended or contradict the directory if
// nobody is in them. An error: the directory does not know all rooms of this look.
func (s *Service) adopt(ctx context.Context, term Term, t looked, at Target, rooms []Adoption, look Look) error {
	if len(rooms) == 0 {
		return nil
	}
	results, err := s.store.Adopt(ctx, term, t.Name, t.Incarnation, rooms)
	if err != nil {
		return err
	}
	var tombs map[string]Tombstone
	calls := 0
	for _, r := range results {
		switch r.Outcome {
		case Adopted:
			s.emit(RoomAdopted, t.Name, r.Room, r.Epoch, "")
		case Known:
		case Ended, Contradict:
			if calls++; calls > maxFollow {
				continue
			}
			if tombs == nil {
				if tombs, err = s.tombstones(ctx, t.Name); err != nil {
					continue
				}
			}
			// Only a teardown, the application's own word, ends a room with people in it.
			torn := tombs[key(r.Room, r.Epoch)].Cause == CauseTeardown
			s.clear(ctx, at, RoomRef{r.Room, r.Epoch}, string(r.Outcome), DestroyOptions{OnlyVacant: !torn})
		}
	}
	return nil
}

func (s *Service) tombstones(ctx context.Context, instance string) (map[string]Tombstone, error) {
	list, err := s.store.Tombstones(ctx, instance)
	if err != nil {
		return nil, err
	}
	m := make(map[string]Tombstone, len(list))
	for _, t := range list {
		m[key(t.Room, t.Epoch)] = t
	}
	return m, nil
}

// clear destroys a room that should not be there, and tells if it must stay.
func (s *Service) clear(ctx context.Context, at Target, room RoomRef, why string, o DestroyOptions) {
	err := s.backend.Destroy(ctx, at, room, o)
	switch {
	case err == nil:
		s.emit(RoomDestroyed, at.Instance, room.Room, room.Epoch, why)
	case errors.Is(err, ErrRefused):
		s.emit(RoomConflict, at.Instance, room.Room, room.Epoch, why+": "+err.Error())
	}
}

// expire ends rooms that nobody has asked for in a long time and nobody is in.
func (s *Service) expire(ctx context.Context, term Term, f Facts, t looked, at Target, pins []Pin, look Look) {
	ttl := s.cfg.RoomTTL
	if len(t.Marks) > 0 {
		ttl = min(ttl, s.cfg.RoomTTLDraining)
	}
	s.mu.Lock()
	m := s.memory[t.Name]
	due := m.quietJudge(f.Now, 2*s.cfg.SweepInterval, pins, look, ttl)
	s.memory[t.Name] = m
	s.mu.Unlock()
	for i, p := range due {
		if i == maxFollow {
			return
		}
		ref := RoomRef{p.Room, p.Epoch}
		o, err := s.backend.Inspect(ctx, at, ref)
		if err != nil || o.Publishers != 0 || o.Viewers != 0 {
			continue
		}
		if _, err := s.store.End(ctx, term, EndRequest{Room: p.Room, Epoch: p.Epoch, Cause: CauseExpired, TTL: ttl}); err != nil {
			continue
		}
		s.emit(RoomEnded, t.Name, p.Room, p.Epoch, string(CauseExpired))
		if err := s.backend.Destroy(ctx, at, ref, DestroyOptions{OnlyVacant: true}); errors.Is(err, ErrRefused) {
			s.emit(RoomConflict, t.Name, p.Room, p.Epoch, "expired, and somebody came in at that moment")
		}
	}
}

func (s *Service) rememberLook(t looked, look Look) {
	rooms := make([]Adoption, 0, len(look.Rooms))
	for _, r := range look.Rooms {
		rooms = append(rooms, Adoption{Room: r.Room, Epoch: r.Epoch, Expected: r.Expected, Settings: r.Settings, Labels: r.Labels})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.memory[t.Name]
	if m.fault != "" {
		s.emit(InstanceAnswers, t.Name, "", 0, "")
	}
	m.incarnation, m.rooms, m.fault = t.Incarnation, rooms, ""
	m.goodRow++
	s.memory[t.Name] = m
}
