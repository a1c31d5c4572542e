package janus

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/roomscaler/roomscaler/broker"
)

// defaultPublishers is how many may send in a room whose settings do not say: Janus's own default of 3 would refuse the fourth of
// a small meeting.
const defaultPublishers = 100

var errNoKey = errors.New("the videoroom has an admin_key and none is configured here")

// Create makes the room. One of the same id that stands there is taken for this very room only if it proves to
// have this room's secret.
func (b *Backend) Create(ctx context.Context, at broker.Target, room broker.RoomSpec) error {
	keyed, err := b.keyed(ctx, at.Address)
	if err != nil {
		return err
	}
	id := idOf(at, room.Epoch)
	request := map[string]any{"publishers": max(defaultPublishers, room.Expected)}
	maps.Copy(request, room.Settings)
	maps.Copy(request, map[string]any{
		"request": "create", "room": id, "permanent": false, "is_private": keyed,
		"description": b.key.Describe(room.RoomMark),
		"secret":      b.key.Secret(at.Pool, room.Room, room.Epoch),
		"pin":         b.key.PIN(at.Pool, room.Room, room.Epoch),
	})
	if keyed {
		request["admin_key"] = b.adminKey()
		b.lives.madePrivate(at.Address)
	}
	_, err = b.message(ctx, at.Address, request)
	if isCode(err, roomExists) {
		return b.prove(ctx, at, id, request["secret"].(string))
	}
	return err
}

// keyed tells whether rooms can be private at the address: the videoroom has an admin_key.
func (b *Backend) keyed(ctx context.Context, address string) (bool, error) {
	if known, fresh := b.lives.get(address); fresh {
		return known.keyed, nil
	}
	_, keyed, err := b.probe(ctx, address)
	return keyed, err
}

// prove tells whether the room that stands there is the one whose secret this is. The secret is derived from
// pool, name and epoch, and nobody else knows it; unlike the description it is never listed, so it cannot be copied. An
// edit that changes nothing asks for it, but takes any secret where the room has none; hence the
// first one without.
func (b *Backend) prove(ctx context.Context, at broker.Target, id roomID, secret string) error {
	other := refused("", "another room has this id: it was made by hand or with another room key", fmt.Errorf("room id %s is taken", id.text))
	_, err := b.message(ctx, at.Address, map[string]any{"request": "edit", "room": id})
	if err == nil {
		return other
	}
	if !isCode(err, roomElement, roomUnauthorized) {
		return partly(err)
	}
	_, err = b.message(ctx, at.Address, map[string]any{"request": "edit", "room": id, "secret": secret})
	switch {
	case err == nil:
		return nil
	case isCode(err, roomUnauthorized):
		return other
	}
	return partly(err)
}

// Destroy ends the room and the sessions of those in it. Janus tells those who could send, but not those who
// only watch: their handles would stay for as long as their sessions live. A session that is in another room as well loses only its handle
// in this one. With OnlyVacant there remains the moment between asking who is there and destroying.
func (b *Backend) Destroy(ctx context.Context, at broker.Target, room broker.RoomRef, o broker.DestroyOptions) error {
	id := idOf(at, room.Epoch)
	publishers, there, err := b.publishers(ctx, at.Address, id)
	if err != nil {
		return err
	}
	var inside []member
	if publishers > 0 || o.OnlyVacant {
		if inside, err = b.scanAll(ctx, at.Address); err != nil {
			return err
		}
	}
	if o.OnlyVacant && there && (publishers > 0 || viewersByRoom(inside)[id] > 0) {
		return refused("", "", errors.New("somebody is in the room"))
	}
	_, err = b.message(ctx, at.Address, map[string]any{"request": "destroy", "room": id, "permanent": false, "secret": b.key.Secret(at.Pool, room.Room, room.Epoch)})
	if isCode(err, roomUnauthorized) {
		return refused("", "another room has this id: it was made by hand or with another room key", err)
	}
	if err != nil && !isCode(err, roomMissing) {
		return err
	}
	if err := b.end(ctx, at.Address, inside, id, false); err != nil {
		return partly(err)
	}
	if o.OnlyVacant && there {
		return nil // nobody can begin to watch where nobody sends
	}
	left, err := b.scanAll(ctx, at.Address)
	if err != nil {
		return partly(err)
	}
	if err := b.end(ctx, at.Address, left, id, true); err != nil {
		return partly(err)
	}
	return nil
}

// Inspect asks by id, so it sees private rooms without an admin_key too.
func (b *Backend) Inspect(ctx context.Context, at broker.Target, room broker.RoomRef) (broker.Occupancy, error) {
	id := idOf(at, room.Epoch)
	publishers, there, err := b.publishers(ctx, at.Address, id)
	if err != nil || !there {
		return broker.Occupancy{}, err
	}
	seen := broker.Occupancy{Exists: true, Publishers: publishers, Viewers: broker.Unknown}
	inside, err := b.scanAll(ctx, at.Address)
	if err == nil {
		seen.Viewers = viewersByRoom(inside)[id]
	}
	return seen, nil
}

// scanAll finds all members on the server.
func (b *Backend) scanAll(ctx context.Context, address string) ([]member, error) {
	sessions, err := b.sessions(ctx, address)
	if err != nil || len(sessions) == 0 {
		return nil, err
	}
	return b.scan(ctx, address, sessions)
}
