package ha

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/roomscaler/roomscaler/broker"
)

// room is one on a pod, with people in it as long as it is there.
type room struct {
	broker.RoomMark
	people int
}

// pod is a media server under a StatefulSet.
type pod struct {
	readyAt, goneAt time.Time // goneAt: zero unless it terminates
	marker          *broker.InstanceMark
	rooms           map[broker.Epoch]*room
}

// media are the pods that there are: a Backend and a Finder in memory.
type media struct {
	mu   sync.Mutex
	pods map[int]*pod
}

func name(ordinal int) string { return fmt.Sprintf("janus-%d", ordinal) }

func (m *media) Find(context.Context) ([]broker.Found, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []broker.Found
	for i := range m.pods {
		list = append(list, broker.Found{Name: name(i), Ordinal: i, Address: name(i)})
	}
	return list, nil
}

// call runs fn on a pod that answers.
func (m *media) call(at broker.Target, fn func(*pod) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, _ := broker.OrdinalOf(at.Instance)
	p := m.pods[i]
	if p == nil || time.Now().Before(p.readyAt) || !p.goneAt.IsZero() {
		return &broker.FaultError{Fault: broker.FaultRefused, Err: broker.ErrRefused}
	}
	return fn(p)
}

func (m *media) Look(_ context.Context, at broker.Target, _ broker.LookOptions) (l broker.Look, err error) {
	err = m.call(at, func(p *pod) error {
		l = broker.Look{Marker: p.marker, SessionTimeout: 5 * time.Second, Complete: true}
		for _, r := range p.rooms {
			l.Rooms = append(l.Rooms, broker.RoomSeen{RoomMark: r.RoomMark, Publishers: r.people})
			l.Sessions += r.people
			l.Handles += r.people
		}
		return nil
	})
	return l, err
}

func (m *media) Plant(_ context.Context, at broker.Target, incarnation string) (found string, err error) {
	err = m.call(at, func(p *pod) error {
		if p.marker == nil {
			p.marker = &broker.InstanceMark{Pool: at.Pool, Instance: at.Instance, Incarnation: incarnation}
		}
		found = p.marker.Incarnation
		return nil
	})
	return found, err
}

func (m *media) Create(_ context.Context, at broker.Target, s broker.RoomSpec) error {
	return m.call(at, func(p *pod) error {
		if p.rooms[s.Epoch] == nil {
			p.rooms[s.Epoch] = &room{RoomMark: s.RoomMark}
		}
		return nil
	})
}

func (m *media) Destroy(_ context.Context, at broker.Target, r broker.RoomRef, o broker.DestroyOptions) error {
	return m.call(at, func(p *pod) error {
		if there := p.rooms[r.Epoch]; there != nil && o.OnlyVacant && there.people > 0 {
			return broker.ErrRefused
		}
		delete(p.rooms, r.Epoch)
		return nil
	})
}

func (m *media) Inspect(_ context.Context, at broker.Target, r broker.RoomRef) (o broker.Occupancy, err error) {
	err = m.call(at, func(p *pod) error {
		if there := p.rooms[r.Epoch]; there != nil {
			o = broker.Occupancy{Exists: true, Publishers: there.people}
		}
		return nil
	})
	return o, err
}

// CheckSettings takes any settings.
func (m *media) CheckSettings(map[string]any) error { return nil }

// join puts people in a room that has just been made.
func (m *media) join(at broker.Placed, people int) error {
	return m.call(broker.Target{Instance: at.Instance.Name}, func(p *pod) error {
		r := p.rooms[at.Pin.Epoch]
		if r == nil {
			return fmt.Errorf("there is no room %s on %s", at.Pin.Room, at.Instance.Name)
		}
		r.people = people
		return nil
	})
}
