package janus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"

	"github.com/roomscaler/roomscaler/broker"
)

// Options set up a Backend.
type Options struct {
	AdminSecret string
	AdminKey    string         // of the videoroom; "" = none
	Key         broker.RoomKey // derives the rooms' secrets and PINs and seals their descriptions
	HTTP        *http.Client   // default: one of its own, without proxy. Each call is bounded by its context alone
}

// Backend is the broker's backend for Janus. It remembers of each address only what cannot change in one
// life of a server, for a short time. All methods are safe for concurrent use.
type Backend struct {
	*Client
	key      broker.RoomKey
	probeKey string // an admin_key that no videoroom has
	lives    lives
}

var (
	_ broker.Backend         = (*Backend)(nil)
	_ broker.SettingsChecker = (*Backend)(nil)
)

// New returns a backend. It asks nothing of any server.
func New(o Options) *Backend {
	return &Backend{
		Client:   NewClient(o.AdminSecret, o.AdminKey, o.HTTP),
		key:      o.Key,
		probeKey: rand.Text(),
		lives:    lives{known: map[string]life{}},
	}
}

// The id of the marker that carries an instance's identity: the greatest number that every JSON reader
// keeps, far above any epoch, or a word where ids are strings.
const (
	markerNumber = "9007199254740991"
	markerString = "roomscaler-instance"
)

func markerID(stringIDs bool) roomID {
	if stringIDs {
		return roomID{text: markerString, strings: true}
	}
	return roomID{text: markerNumber}
}

// Plant makes the marker room. It is public, so that it can be read without an admin_key, and closed by
// a PIN that nobody is told.
func (b *Backend) Plant(ctx context.Context, at broker.Target, incarnation string) (string, error) {
	secret := b.key.MarkerSecret(at.Pool)
	request := map[string]any{
		"request": "create", "room": markerID(at.StringIDs), "permanent": false, "is_private": false, "publishers": 1,
		"description": b.key.DescribeInstance(broker.InstanceMark{Pool: at.Pool, Instance: at.Instance, Incarnation: incarnation}),
		"secret":      secret, "pin": secret,
	}
	if key := b.adminKey(); key != "" {
		request["admin_key"] = key
	}
	_, err := b.message(ctx, at.Address, request)
	if err == nil {
		return incarnation, nil
	}
	if !isCode(err, roomExists) {
		return "", err
	}
	found, err := b.readMarker(ctx, at)
	if err != nil {
		return "", err
	}
	return found, nil
}

// readMarker returns the incarnation of the marker that stands there.
func (b *Backend) readMarker(ctx context.Context, at broker.Target) (string, error) {
	rooms, err := b.rooms(ctx, at.Address, "")
	if err != nil {
		return "", partly(err)
	}
	for _, r := range rooms {
		if *r.ID != markerID(at.StringIDs) {
			continue
		}
		m, ok := b.key.ReadInstance(r.Description)
		switch {
		case !ok:
			return "", refused(broker.FaultOther, "a room with the marker's id stands there that this room key did not seal: all brokers of a pool need the same room key; if a client made it, restart Janus",
				errors.New("the marker cannot be read"))
		case m.Pool != at.Pool || m.Instance != at.Instance:
			return "", refused(broker.FaultStranger, "the address leads to another instance: check the list of instances and its DNS entries",
				fmt.Errorf("the marker is that of instance %q in pool %q", m.Instance, m.Pool))
		}
		return m.Incarnation, nil
	}
	return "", uncertain(broker.FaultOther, "", errors.New("the marker was there and is not listed now"))
}

// partly turns the failure of a later step into one of which nobody knows the effect: an earlier step
// may have had its own.
func partly(err error) error {
	f := fault(err)
	return &broker.FaultError{Fault: f.Fault, Advice: f.Advice, Err: fmt.Errorf("%w: %v", broker.ErrUncertain, err)}
}
