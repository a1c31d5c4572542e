package httpapi

import (
	"encoding/json"
	"time"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

func (s Served) pin(p broker.Placed) brokerapi.Pin {
	id := p.Pin.RoomID()
	if p.Instance.StringIDs {
		id = `"` + id + `"`
	}
	token := ""
	if s.Token != nil {
		token = s.Token()
	}
	return brokerapi.Pin{
		Token: token, ICEServers: s.ICEServers,
		Room: p.Pin.Room, Instance: p.Pin.Instance, Incarnation: p.Pin.Incarnation, Epoch: int64(p.Pin.Epoch), State: string(p.Pin.State),
		Address: p.Instance.Address, URLs: s.URLs.of(p.Instance),
		JanusRoom: json.RawMessage(id), PIN: p.JoinPIN,
		CreatedAt: p.Pin.CreatedAt, LastSeen: p.Pin.CreatedAt.Add(p.Pin.LastSeen.Since(p.Pin.Created)),
		Labels: p.Pin.Labels,
	}
}

func instances(list []broker.Instance, now broker.PoolTime) []brokerapi.Instance {
	out := make([]brokerapi.Instance, 0, len(list))
	for _, in := range list {
		out = append(out, instance(in, now))
	}
	return out
}

func instance(in broker.Instance, now broker.PoolTime) brokerapi.Instance {
	out := brokerapi.Instance{
		Name: in.Name, Ordinal: in.Ordinal, Address: in.Address, Incarnation: in.Incarnation, State: string(in.State()),
		Reserved: in.Reserved, RoomsLeft: in.Pins, OldestRoomMS: oldest(in, now), EmptyMS: age(in.EmptySince, now),
		KnownMS: ms(now.Since(in.FirstSeen)), UnlistedMS: ms(now.Since(max(in.ListedAt, in.FirstSeen))),
		Reason: string(in.Fault), Advice: in.Advice,
		Marks: make([]brokerapi.Mark, 0, len(in.Marks)),
	}
	if in.LookBegin != broker.Never {
		out.Sessions, out.Participants, out.Rooms, out.AgeMS = &in.Sessions, &in.Participants, &in.Rooms, age(in.LookBegin, now)
	}
	if in.Fault != "" {
		out.FailingMS = age(in.FaultSince, now)
	}
	for _, m := range in.Marks {
		out.Marks = append(out.Marks, brokerapi.Mark{Owner: string(m.Owner), Reason: m.Reason, AgeMS: ms(m.Age(now)), RemainingMS: remaining(m, now)})
	}
	return out
}

func drainOf(s broker.DrainStatus) brokerapi.Drain {
	out := brokerapi.Drain{
		Result: string(s.Result), Instance: s.Instance.Name, Owner: string(s.Owner), RoomsLeft: s.Instance.Pins, OldestRoomMS: oldest(s.Instance, s.Now),
	}
	if s.Instance.LookBegin != broker.Never {
		out.Sessions, out.AgeMS = &s.Instance.Sessions, age(s.Instance.LookBegin, s.Now)
	}
	if m, ok := s.Instance.Mark(s.Owner); ok {
		out.RemainingMS = remaining(m, s.Now)
	}
	return out
}

func plan(p broker.Plan, now broker.PoolTime) brokerapi.Plan {
	return brokerapi.Plan{Version: p.Version, Desired: p.Desired, Target: p.Target, EmptyWhen: p.EmptyWhen, AgeMS: ms(now.Since(p.StoredAt)), Body: p.Body}
}

func oldest(in broker.Instance, now broker.PoolTime) *int64 {
	if in.Pins == 0 {
		return nil
	}
	return age(in.OldestPin, now)
}

func remaining(m broker.Mark, now broker.PoolTime) *int64 {
	left, ok := m.Remaining(now)
	if !ok {
		return nil
	}
	v := ms(left)
	return &v
}

// age is nil for what has not happened.
func age(t, now broker.PoolTime) *int64 {
	if t == broker.Never {
		return nil
	}
	v := ms(now.Since(t))
	return &v
}

func ms(d time.Duration) int64 { return d.Milliseconds() }
