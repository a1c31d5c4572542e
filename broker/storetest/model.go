package storetest

import (
	"errors"

	"github.com/anishathalye/porcupine"

	"github.com/roomscaler/roomscaler/broker"
)

// kind is what a client of a history calls.
type kind string

const (
	doClaim    kind = "claim"
	doConfirm  kind = "confirm"
	doRefused  kind = "end: refused"
	doTeardown kind = "end: teardown"
	doExpire   kind = "end: expired"
	doMark     kind = "mark"
	doUnmark   kind = "unmark"
	doPlan     kind = "plan"
	doLookup   kind = "lookup"
	doFacts    kind = "facts"
)

// call is one call of a history.
type call struct {
	Kind     kind
	Room     int
	Instance int
	Owner    broker.Owner
	Epoch    broker.Epoch
	Expected int
	Version  int64
	Desired  int
}

// answer is what came of a call. Code is "" for success.
type answer struct {
	Code     string
	Instance int
	Epoch    broker.Epoch
	Fresh    bool
	Version  int64
	Desired  int
	Homes    [linearInstances]home
}

// outcome names the errors that a history may hold; another one comes back as it is.
func outcome(err error) (string, error) {
	for code, known := range map[string]error{
		"stale": broker.ErrStale, "not found": broker.ErrRoomNotFound, "no capacity": broker.ErrNoCapacity,
		"version": broker.ErrVersion, "released": broker.ErrReleased,
	} {
		if errors.Is(err, known) {
			return code, nil
		}
	}
	var refused *broker.SealError
	if errors.As(err, &refused) {
		return "seal", nil
	}
	return "", err
}

// directory is the sequential directory: what the store must look like between calls.
type directory struct {
	Rooms   [linearRooms]roomPin
	Homes   [linearInstances]home
	Epoch   broker.Epoch // the greatest given
	Version int64
	Desired int
}

type roomPin struct {
	Epoch    broker.Epoch // 0: none
	Instance int
	Reserved int
	Live     bool
}

type home struct {
	Pins, Reserved       int
	Scaler, Hook, Sealed bool
}

// directoryModel judges histories that begin as record makes them: all instances
// known, free, empty, and a first plan that asks for all of them.
func directoryModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return directory{Version: 1, Desired: linearInstances} },
		Step: func(state, input, output any) (bool, any) {
			d, in, out := state.(directory), input.(call), output.(answer)
			return d.step(in, out), d
		},
	}
}

// step makes the call on the directory, and reports whether it answers as was seen.
func (d *directory) step(in call, out answer) bool {
	p, h := &d.Rooms[in.Room], &d.Homes[in.Instance]
	switch in.Kind {
	case doClaim:
		return d.claim(p, in.Expected, out)
	case doConfirm:
		if p.Epoch == 0 || p.Epoch != in.Epoch {
			return out.Code == "stale"
		}
		p.Live = true
		return p.is(out)
	case doLookup:
		if p.Epoch == 0 {
			return out.Code == "not found"
		}
		return p.is(out)
	case doRefused, doTeardown, doExpire:
		return d.end(p, in, out)
	case doMark:
		*h.mark(in.Owner) = true
		return out.Code == ""
	case doUnmark:
		if h.Sealed {
			return out.Code == "released"
		}
		*h.mark(in.Owner) = false
		return out.Code == ""
	case doPlan:
		return d.plan(in, out)
	case doFacts:
		return out.Version == d.Version && out.Desired == d.Desired && out.Homes == d.Homes
	}
	return false
}

func (p roomPin) is(out answer) bool {
	return out.Code == "" && out.Epoch == p.Epoch && out.Instance == p.Instance && !out.Fresh
}

func (h *home) mark(owner broker.Owner) *bool {
	if owner == broker.OwnerScaler {
		return &h.Scaler
	}
	return &h.Hook
}

func (d *directory) claim(p *roomPin, expected int, out answer) bool {
	if p.Epoch != 0 {
		return p.is(out)
	}
	best := -1
	for i, h := range d.Homes {
		if h.Scaler || h.Hook || h.Sealed || i >= d.Desired || h.Reserved+expected > linearHard {
			continue
		}
		if best < 0 || h.Reserved < d.Homes[best].Reserved {
			best = i
		}
	}
	if best < 0 {
		return out.Code == "no capacity"
	}
	if out.Code != "" || !out.Fresh || out.Instance != best || out.Epoch <= d.Epoch {
		return false
	}
	*p = roomPin{Epoch: out.Epoch, Instance: best, Reserved: expected}
	d.Epoch = out.Epoch
	d.Homes[best].Pins++
	d.Homes[best].Reserved += expected
	return true
}

func (d *directory) end(p *roomPin, in call, out answer) bool {
	holds := p.Epoch == in.Epoch
	switch in.Kind {
	case doRefused:
		holds = holds && !p.Live
	case doExpire:
		holds = holds && p.Live
	case doTeardown:
		holds = holds || in.Epoch == 0
	}
	switch {
	case p.Epoch == 0:
		return out.Code == "not found"
	case !holds:
		return out.Code == "stale"
	case !p.is(out):
		return false
	}
	d.Homes[p.Instance].Pins--
	d.Homes[p.Instance].Reserved -= p.Reserved
	*p = roomPin{}
	return true
}

func (d *directory) plan(in call, out answer) bool {
	if in.Version != d.Version {
		return out.Code == "version"
	}
	for i := in.Desired; i < linearInstances; i++ {
		if h := d.Homes[i]; !h.Sealed && (!h.Scaler || h.Pins > 0) {
			return out.Code == "seal"
		}
	}
	for i := range d.Homes {
		d.Homes[i].Sealed = i >= in.Desired
	}
	d.Version++
	d.Desired = in.Desired
	return out.Code == "" && out.Version == d.Version
}
