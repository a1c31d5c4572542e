package broker

import "time"

// remembered is what one broker has seen of an instance, for the day the store loses
// everything, and for what takes more than one look to judge.
type remembered struct {
	instance    Instance // as the store last told it
	at          PoolTime // when that was
	incarnation string   // of the last good look, "" if there was none
	rooms       []Adoption
	fault       Fault // of the last look
	goodRow     int   // good looks in a row
	needRow     int   // good looks in a row that end a suspicion; grows with each relapse
	quiet       map[string]quietRoom
	viewersDue  bool     // the next look shall count viewers
	viewersSeen PoolTime // when a look last found viewers in such a room; 0 = never
	nodeDown    downTime
}

// downTime accumulates how long the finder has said without a break that an instance's node is down.
type downTime struct {
	time time.Duration
	last PoolTime // 0: it does not say so
}

// nodeDown advances the time of an instance's node by one sweep and returns it.
func (s *Service) nodeDown(instance string, now PoolTime) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.memory[instance]
	switch d := &m.nodeDown; {
	case !s.found[instance].NodeDown:
		*d = downTime{}
	case d.last == 0:
		d.last = now
	default:
		d.time += min(now.Since(d.last), 2*s.cfg.SweepInterval)
		d.last = now
	}
	s.memory[instance] = m
	return m.nodeDown.time
}

// quietRoom accumulates how long nobody has been seen in a room.
type quietRoom struct {
	time time.Duration
	last PoolTime
}

// viewersPause is how long a look that found viewers in the rooms due to expire spares the
// instance another such look, which costs a request for each handle.
const viewersPause = 30 * time.Second

// quietJudge advances the quiet times of an instance by one good look and returns the pins
// that are due to expire. A ghost stays in a room for up to the session timeout and two watchdog passes
// (Janus: every 2 s), so a room is quiet only after that. A look that did not count viewers
// adds nothing: it has not seen that nobody is there.
func (m *remembered) quietJudge(now PoolTime, step time.Duration, pins []Pin, l Look, ttl time.Duration) (due []Pin) {
	need := l.SessionTimeout + 4*time.Second
	rooms := make(map[string]RoomSeen, len(l.Rooms))
	for _, r := range l.Rooms {
		rooms[key(r.Room, r.Epoch)] = r
	}
	quiet := map[string]quietRoom{}
	m.viewersDue = false
	for _, p := range pins {
		k := key(p.Room, p.Epoch)
		r, ok := rooms[k]
		if !ok || p.State != Live || r.Publishers > 0 {
			continue
		}
		if r.Viewers > 0 {
			m.viewersSeen = now
			continue
		}
		q, known := m.quiet[k]
		if known && r.Viewers == 0 {
			q.time += min(now.Since(q.last), step)
		}
		q.last = now
		quiet[k] = q
		if idle := now.Since(p.LastSeen); r.Viewers == 0 && q.time > need && idle > ttl {
			due = append(due, p)
		} else if r.Viewers == Unknown && idle > ttl-need {
			m.viewersDue = true
		}
	}
	m.quiet = quiet
	if m.viewersSeen != 0 && now.Since(m.viewersSeen) <= viewersPause {
		m.viewersDue = false
	}
	return due
}

// observe keeps what the store told, for the day it cannot tell any more.
func (s *Service) observe(f Facts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Plan.Version > 0 {
		s.lastDesired, s.lastLimit = f.Plan.Desired, f.Plan.Limit(f.Now)
	}
	known := make(map[string]bool, len(f.Instances))
	for _, in := range f.Instances {
		known[in.Name] = true
		m := s.memory[in.Name]
		m.instance, m.at = in, f.Now
		s.memory[in.Name] = m
	}
	if f.Phase != Ready {
		return // what is missing may be missing only so far
	}
	for name := range s.memory {
		if !known[name] {
			delete(s.memory, name)
		}
	}
}

// publishIdentified tells creates which incarnation this broker has itself found on each instance.
func (s *Service) publishIdentified() {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]string, len(s.memory))
	for name, m := range s.memory {
		if m.incarnation != "" && m.fault != FaultStranger && m.fault != FaultOther {
			all[name] = m.incarnation
		}
	}
	s.identified.Store(&all)
}

// rememberMarks keeps an answer about marks that was given to a caller: the store may lose it before
// the next sweep reads it.
func (s *Service) rememberMarks(in Instance, now PoolTime) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.memory[in.Name]
	m.instance, m.at = in, now
	s.memory[in.Name] = m
}

// rememberPlan keeps a decision that the scaler may serve from now on.
func (s *Service) rememberPlan(p Plan, u PlanUpdate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastDesired, s.lastLimit = p.Desired, p.Limit(p.StoredAt)
	for _, r := range u.Seal {
		if m, ok := s.memory[r.Instance]; ok {
			m.instance.Seal = &Seal{Version: p.Version, At: p.StoredAt}
			s.memory[r.Instance] = m
		}
	}
}
