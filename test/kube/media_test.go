package kube

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/drainhook"
)

// mediaServers are the containers in the pods, by the pods' names.
type mediaServers struct {
	mu      sync.Mutex
	running map[string]*mediaServer
}

type mediaServer struct {
	marker *broker.InstanceMark
	rooms  map[broker.Epoch]*mediaRoom
}

type mediaRoom struct {
	broker.RoomMark
	people int
}

func (m *mediaServers) start(pod string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running[pod] = &mediaServer{rooms: map[broker.Epoch]*mediaRoom{}}
}

func (m *mediaServers) runs(pod string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.running[pod] != nil
}

// kill ends a server and returns the rooms in which people were.
func (m *mediaServers) kill(pod string) (cut []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.running[pod]; s != nil {
		for _, r := range s.rooms {
			if r.people > 0 {
				cut = append(cut, r.Room)
			}
		}
	}
	delete(m.running, pod)
	return cut
}

// fill lets so many people be in a room, and reports whether the room is there.
func (m *mediaServers) fill(pod string, epoch broker.Epoch, people int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.running[pod]
	if s == nil || s.rooms[epoch] == nil {
		return false
	}
	s.rooms[epoch].people = people
	return true
}

func (m *mediaServers) call(pod string, fn func(*mediaServer) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.running[pod]
	if s == nil {
		return &broker.FaultError{Fault: broker.FaultUnreachable, Err: broker.ErrRefused}
	}
	return fn(s)
}

func (s *mediaServer) sessions() (n int) {
	for _, r := range s.rooms {
		n += r.people
	}
	return n
}

// Look is broker.Backend's.
func (m *mediaServers) Look(_ context.Context, at broker.Target, _ broker.LookOptions) (l broker.Look, err error) {
	err = m.call(at.Address, func(s *mediaServer) error {
		l = broker.Look{Marker: s.marker, Sessions: s.sessions(), Handles: s.sessions(), SessionTimeout: time.Minute, Complete: true}
		for _, r := range s.rooms {
			l.Rooms = append(l.Rooms, broker.RoomSeen{RoomMark: r.RoomMark, Publishers: r.people})
		}
		return nil
	})
	return l, err
}

// Plant is broker.Backend's.
func (m *mediaServers) Plant(_ context.Context, at broker.Target, incarnation string) (found string, err error) {
	err = m.call(at.Address, func(s *mediaServer) error {
		if s.marker == nil {
			s.marker = &broker.InstanceMark{Pool: at.Pool, Instance: at.Instance, Incarnation: incarnation}
		}
		found = s.marker.Incarnation
		return nil
	})
	return found, err
}

// Create is broker.Backend's.
func (m *mediaServers) Create(_ context.Context, at broker.Target, r broker.RoomSpec) error {
	return m.call(at.Address, func(s *mediaServer) error {
		if s.rooms[r.Epoch] == nil {
			s.rooms[r.Epoch] = &mediaRoom{RoomMark: r.RoomMark}
		}
		return nil
	})
}

// Destroy is broker.Backend's.
func (m *mediaServers) Destroy(_ context.Context, at broker.Target, r broker.RoomRef, o broker.DestroyOptions) error {
	return m.call(at.Address, func(s *mediaServer) error {
		if there := s.rooms[r.Epoch]; there != nil && o.OnlyVacant && there.people > 0 {
			return broker.ErrRefused
		}
		delete(s.rooms, r.Epoch)
		return nil
	})
}

// Inspect is broker.Backend's.
func (m *mediaServers) Inspect(_ context.Context, at broker.Target, r broker.RoomRef) (o broker.Occupancy, err error) {
	err = m.call(at.Address, func(s *mediaServer) error {
		if there := s.rooms[r.Epoch]; there != nil {
			o = broker.Occupancy{Exists: true, Publishers: there.people}
		}
		return nil
	})
	return o, err
}

// local is the server as the drain hook in its pod sees it.
type local struct {
	*mediaServers
	pod string
}

// Sessions is drainhook.Local's.
func (l local) Sessions(context.Context) (n int, err error) {
	if !l.runs(l.pod) {
		return 0, fmt.Errorf("%s: %w", l.pod, drainhook.ErrGone)
	}
	return n, l.call(l.pod, func(s *mediaServer) error { n = s.sessions(); return nil })
}

// SetAccepting is drainhook.Local's. Nobody comes by himself here, so that the door makes no difference.
func (l local) SetAccepting(context.Context, bool) error {
	return l.call(l.pod, func(*mediaServer) error { return nil })
}
