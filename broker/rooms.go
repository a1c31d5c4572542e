package broker

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// CreateRequest asks for a room.
type CreateRequest struct {
	Room     string
	Expected int            // participants; 0 = Config.DefaultParticipants
	Settings map[string]any // the backend's own, see SettingsChecker; none: whatever a room that exists has
	Labels   map[string]string
}

// Placed is a pin with what a client needs to use it.
type Placed struct {
	Pin      Pin
	Instance Instance // Address and StringIDs; the rest is up to a second old
	JoinPIN  string
	Now      PoolTime
}

// snapshotAge is how old the facts may be from which candidates are ordered. The claim itself
// picks by what the store holds at that moment.
const snapshotAge = time.Second

// createTries bounds how many instances a create may be refused by before its caller hears of it.
const createTries = 4

// CreateRoom returns the room's pin, with the room made on its instance. fresh is true for exactly one of
// concurrent callers, the one whose claim it was. It may be called again at any time and finishes
// what another call left half done.
//
// Errors: *InvalidError, ErrNeverFits, ErrNoCapacity, ErrSettingsDiffer, ErrBusy, ErrRebuilding, ErrStoreUnavailable, and a
// *FaultError that wraps ErrUncertain when the instance does not answer: the claim stays, because the
// room may be there. It blocks for up to the instance timeout with each of a few instances.
func (s *Service) CreateRoom(ctx context.Context, r CreateRequest) (Placed, bool, error) {
	if err := s.checkCreate(&r); err != nil {
		return Placed{}, false, err
	}
	hash := settingsHash(r.Settings)
	skip := map[string]bool{}
	var last error
	for range createTries {
		pin, fresh, err := s.claim(ctx, r, hash, skip)
		if errors.Is(err, ErrNoCapacity) && last != nil {
			return Placed{}, false, fmt.Errorf("%w: %w", ErrNoCapacity, last)
		}
		if err != nil {
			return Placed{}, false, err
		}
		if hash != "" && pin.Settings != hash {
			return Placed{}, false, ErrSettingsDiffer
		}
		if pin.State == Creating && pin.Settings != hash {
			// Only who knows the settings can make the room.
			return Placed{}, false, fmt.Errorf("%w, with settings", ErrBusy)
		}
		if pin.State == Creating {
			pin, err = s.finish(ctx, pin, r.Settings)
		}
		switch {
		case err == nil:
			p, err := s.placed(ctx, pin)
			return p, fresh, err
		case errors.Is(err, ErrRefused):
			skip[pin.Instance] = true
		case errors.Is(err, ErrStale):
			// It was torn down, or its instance ended, while the room was being made.
		default:
			return Placed{}, false, err
		}
		last = err
	}
	if errors.Is(last, ErrStale) {
		return Placed{}, false, fmt.Errorf("%w: %w", ErrBusy, last)
	}
	return Placed{}, false, last
}

func (s *Service) checkCreate(r *CreateRequest) error {
	if err := CheckRoom(r.Room); err != nil {
		return err
	}
	if r.Expected < 0 {
		return &InvalidError{"expected_participants", "is negative"}
	}
	if r.Expected > MaxParticipants {
		return &InvalidError{"expected_participants", fmt.Sprintf("is above %d; give the number of people that the room is for", MaxParticipants)}
	}
	setDefault(&r.Expected, s.cfg.DefaultParticipants)
	if s.cfg.MaxSessions > 0 && r.Expected > s.cfg.MaxSessions {
		return fmt.Errorf("%w: %d participants expected, %d sessions allowed", ErrNeverFits, r.Expected, s.cfg.MaxSessions)
	}
	if len(r.Settings) == 0 {
		return nil
	}
	c, ok := s.backend.(SettingsChecker)
	if !ok {
		return &InvalidError{"settings", "this kind of media server takes none"}
	}
	return c.CheckSettings(r.Settings)
}

// claim makes the room's pin or returns the one that stands. Without a place by the cached
// facts it looks once more by fresh ones.
func (s *Service) claim(ctx context.Context, r CreateRequest, hash string, skip map[string]bool) (Pin, bool, error) {
	term, err := s.knownTerm()
	if err != nil {
		return Pin{}, false, err
	}
	for age := snapshotAge; ; age = 0 {
		f, err := s.factsWithin(ctx, age)
		if err != nil {
			return Pin{}, false, err
		}
		target := s.cfg.Target
		if f.Plan.Target > 0 {
			target = f.Plan.Target
		}
		c, pick, soft := Place(f, PlaceRequest{
			Placement: s.cfg.Placement, Expected: r.Expected, Target: target, Max: s.cfg.MaxSessions, Turn: s.turn.Add(1), Skip: skip, Identified: s.foundLives(),
		})
		pin, fresh, err := s.store.Claim(ctx, term, ClaimRequest{
			Room: r.Room, Expected: r.Expected, Settings: hash, Labels: r.Labels,
			Pick: pick, Soft: soft, Hard: s.cfg.MaxSessions, Candidates: c,
		})
		if errors.Is(err, ErrNoCapacity) && age > 0 {
			continue
		}
		return pin, fresh, s.notice(err)
	}
}

// finish makes the room of a pin in state creating and confirms it. Whoever finds such a pin may call
// it; calls for one pin in this process share one run.
func (s *Service) finish(ctx context.Context, pin Pin, settings map[string]any) (Pin, error) {
	return s.creates.do(ctx, pin.Room+"\x00"+pin.Epoch.String(), 3*s.cfg.InstanceTimeout, func(ctx context.Context) (Pin, error) {
		in, err := s.home(ctx, pin)
		if err != nil {
			return pin, err
		}
		at := s.target(in)
		c, cancel := context.WithTimeout(ctx, s.cfg.InstanceTimeout)
		err = s.backend.Create(c, at, RoomSpec{RoomMark: s.markOf(pin), Settings: settings})
		cancel()
		term, terr := s.knownTerm()
		switch {
		case terr != nil:
			return pin, terr
		case errors.Is(err, ErrRefused):
			if _, e := s.store.End(ctx, term, EndRequest{Room: pin.Room, Epoch: pin.Epoch, Cause: CauseRefused}); e != nil && !isGone(e) {
				return pin, s.notice(e)
			}
			return pin, err
		case err != nil:
			return pin, err
		}
		live, err := s.store.Confirm(ctx, term, pin.Room, pin.Epoch)
		if errors.Is(err, ErrStale) {
			// Nobody was told of this room: what was made late is taken away again, or by the next sweep.
			c, cancel := context.WithTimeout(ctx, s.cfg.InstanceTimeout)
			defer cancel()
			return pin, errors.Join(err, s.backend.Destroy(c, at, RoomRef{pin.Room, pin.Epoch}, DestroyOptions{OnlyVacant: true}))
		}
		return live, s.notice(err)
	})
}

func isGone(err error) bool { return errors.Is(err, ErrStale) || errors.Is(err, ErrRoomNotFound) }

func (s *Service) markOf(p Pin) RoomMark {
	return RoomMark{Pool: s.cfg.Pool, Room: p.Room, Epoch: p.Epoch, Instance: p.Instance, Expected: p.Expected, Settings: p.Settings, Labels: p.Labels}
}

func (s *Service) target(in Instance) Target {
	return Target{Pool: s.cfg.Pool, Instance: in.Name, Address: in.Address, StringIDs: in.StringIDs}
}

// home returns the instance of a pin, from fresh facts if the cached ones do not have it.
func (s *Service) home(ctx context.Context, pin Pin) (Instance, error) {
	for _, age := range []time.Duration{snapshotAge, 0} {
		f, err := s.factsWithin(ctx, age)
		if err != nil {
			return Instance{}, err
		}
		if in, ok := f.instance(pin.Instance); ok && in.Incarnation == pin.Incarnation {
			return in, nil
		}
	}
	return Instance{}, fmt.Errorf("%w: %s has begun a new life", ErrStale, pin.Instance)
}

func (s *Service) placed(ctx context.Context, pin Pin) (Placed, error) {
	f, err := s.factsWithin(ctx, snapshotAge)
	if err != nil {
		return Placed{}, err
	}
	in, ok := f.instance(pin.Instance)
	if !ok {
		if f, err = s.Facts(ctx); err != nil {
			return Placed{}, err
		}
		if in, ok = f.instance(pin.Instance); !ok {
			return Placed{}, fmt.Errorf("%w: %s of room %q", ErrInstanceNotFound, pin.Instance, pin.Room)
		}
	}
	return Placed{Pin: pin, Instance: in, JoinPIN: s.cfg.Key.PIN(s.cfg.Pool, pin.Room, pin.Epoch), Now: f.Now}, nil
}

// Lookup returns a room's pin, or ErrRoomNotFound. With touch it counts as use of the room.
func (s *Service) Lookup(ctx context.Context, room string, touch bool) (Placed, error) {
	if err := CheckRoom(room); err != nil {
		return Placed{}, err
	}
	pin, st, err := s.store.Lookup(ctx, room, touch)
	if err != nil {
		if errors.Is(err, ErrRoomNotFound) && st.Phase == Rebuilding {
			return Placed{}, s.notice(ErrRebuilding) // it may be there and not yet found again
		}
		return Placed{}, s.notice(err)
	}
	return s.placed(ctx, pin)
}

// DeleteRoom tears a room down: its pin, the room, the sessions of those in it. No such room is no error. With
// an epoch, ErrStale unless it is the room's. When the instance does not answer, the directory's part is
// done and the sweep does the rest (event TeardownOwed).
func (s *Service) DeleteRoom(ctx context.Context, room string, epoch Epoch) error {
	if err := CheckRoom(room); err != nil {
		return err
	}
	term, err := s.knownTerm()
	if err != nil {
		return err
	}
	pin, err := s.store.End(ctx, term, EndRequest{Room: room, Epoch: epoch, Cause: CauseTeardown})
	if errors.Is(err, ErrRoomNotFound) {
		st, err := s.store.State(ctx)
		if err == nil && st.Phase == Rebuilding {
			return s.notice(ErrRebuilding)
		}
		return s.notice(err)
	}
	if err != nil {
		return s.notice(err)
	}
	in, err := s.home(ctx, pin)
	if err == nil {
		c, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.InstanceTimeout)
		defer cancel()
		err = s.backend.Destroy(c, s.target(in), RoomRef{pin.Room, pin.Epoch}, DestroyOptions{})
	}
	if err != nil && !errors.Is(err, ErrStale) { // stale: the instance's new life has no such room
		s.emit(TeardownOwed, pin.Instance, pin.Room, pin.Epoch, err.Error())
	}
	return nil
}

// Rooms lists pins in order of room name after the name `after`, at most limit (0 = all). Fewer than limit means
// that there are no more.
func (s *Service) Rooms(ctx context.Context, instance, after string, limit int) ([]Placed, error) {
	var list []Placed
	for {
		want := 0
		if limit > 0 {
			want = limit - len(list)
		}
		pins, err := s.store.Pins(ctx, instance, after, want)
		if err != nil {
			return nil, s.notice(err)
		}
		for _, p := range pins {
			v, err := s.placed(ctx, p)
			if errors.Is(err, ErrInstanceNotFound) {
				continue // ended between the two reads
			}
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		if limit == 0 || len(pins) < want || len(list) == limit {
			return list, nil
		}
		after = pins[len(pins)-1].Room
	}
}
