package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

// maxLabels bounds a room's labels, names and values together: they are kept in the
// room's description on the media server too.
const maxLabels = 4 << 10

func createRoom(ctx context.Context, _ *Handler, c *call) (answer, error) {
	var in brokerapi.CreateRoom
	if err := decode(c.body, &in); err != nil {
		return answer{}, err
	}
	if in.ExpectedParticipants < 0 {
		return answer{}, invalid("expected_participants", "give a number from 1, or leave it out for the default")
	}
	if err := checkLabels(in.Labels); err != nil {
		return answer{}, err
	}
	var p broker.Placed
	var fresh bool
	cut, err := untilStop(ctx, c, func(ctx context.Context) (err error) {
		p, fresh, err = c.pool().CreateRoomWithin(ctx, broker.CreateRequest{
			Room: c.names["room"], Expected: in.ExpectedParticipants, Settings: in.Janus, Labels: in.Labels,
		}, c.query.wait)
		return err
	})
	if cut {
		err = broker.ErrNoCapacity // another broker may go on waiting
	}
	if err != nil {
		return answer{}, err
	}
	a := answer{etag: p.Pin.Epoch.String(), body: c.served.pin(p)}
	if fresh {
		a.status = http.StatusCreated
	}
	return a, nil
}

func checkLabels(labels map[string]string) error {
	size := 0
	for name, value := range labels {
		if name == "" {
			return invalid("labels", "has an empty name; give each label a name")
		}
		size += len(name) + len(value)
	}
	if size > maxLabels {
		return invalid("labels", fmt.Sprintf("have %d bytes together; at most %d are allowed", size, maxLabels))
	}
	return nil
}

func lookupRoom(ctx context.Context, _ *Handler, c *call) (answer, error) {
	p, err := c.pool().Lookup(ctx, c.names["room"], c.query.touch)
	if err != nil {
		return answer{}, err
	}
	return answer{etag: p.Pin.Epoch.String(), body: c.served.pin(p)}, nil
}

func deleteRoom(ctx context.Context, _ *Handler, c *call) (answer, error) {
	epoch, given, err := ifMatch(c.header)
	if err == nil && given && epoch == 0 {
		err = invalid("If-Match", `give the room's epoch in quotes, or leave the header out for any`)
	}
	if err != nil {
		return answer{}, err
	}
	err = c.pool().DeleteRoom(ctx, c.names["room"], broker.Epoch(epoch))
	if err != nil && !errors.Is(err, broker.ErrRoomNotFound) {
		return answer{}, err
	}
	return answer{status: http.StatusNoContent}, nil
}

func listRooms(ctx context.Context, _ *Handler, c *call) (answer, error) {
	placed, err := c.pool().Rooms(ctx, c.query.instance, c.query.after, c.query.limit)
	if err != nil {
		return answer{}, err
	}
	page := brokerapi.Rooms{Rooms: make([]brokerapi.Pin, 0, len(placed))}
	for _, p := range placed {
		page.Rooms = append(page.Rooms, c.served.pin(p))
	}
	if len(placed) >= c.query.limit {
		page.Cursor = cursorOf(placed[len(placed)-1].Pin.Room)
	}
	return answer{body: page}, nil
}
