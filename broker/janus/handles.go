package janus

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// scanWidth is how many requests a scan has in flight: Janus works off admin requests one by one,
// so more would only queue there.
const scanWidth = 8

// handleInfo is what the core says of a handle with plugin_only.
type handleInfo struct {
	Plugin   string `json:"plugin"`
	Specific *struct {
		Type string  `json:"type"`
		Room *roomID `json:"room"` // absent when it is in none
	} `json:"plugin_specific"`
}

// member is a handle that is in a room, or was left in one that is gone.
type member struct {
	session, handle uint64
	room            roomID
	viewer          bool // it only watches
}

// scan finds all members, by two requests and more for each session. Sessions and handles that go
// meanwhile are left out; with any other failure nothing is known.
func (c *Client) scan(ctx context.Context, address string, sessions []uint64) ([]member, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		mu    sync.Mutex
		found []member
		wg    sync.WaitGroup
		queue = make(chan uint64)
	)
	for range min(scanWidth, len(sessions)) {
		wg.Go(func() {
			for s := range queue {
				ms, err := c.members(ctx, address, s)
				if err != nil {
					cancel(err)
				}
				mu.Lock()
				found = append(found, ms...)
				mu.Unlock()
			}
		})
	}
	for _, s := range sessions {
		queue <- s
	}
	close(queue)
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return found, nil
}

// members finds the members of one session.
func (c *Client) members(ctx context.Context, address string, session uint64) ([]member, error) {
	path := fmt.Sprintf("/%d", session)
	r, err := c.ask(ctx, address, "list_handles", path, nil)
	if isCode(err, coreNoSession) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if r.Handles == nil {
		return nil, badAnswer("list_handles", errors.New("the answer has no handles"))
	}
	var found []member
	for _, h := range *r.Handles {
		r, err := c.ask(ctx, address, "handle_info", fmt.Sprintf("%s/%d", path, h), map[string]any{"plugin_only": true})
		if isCode(err, coreNoSession, coreNoHandle) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if r.Info == nil || (r.Info.Plugin == videoroom && r.Info.Specific == nil) {
			return nil, badAnswer("handle_info", errors.New("the answer does not say where the handle is"))
		}
		if in := r.Info.Specific; r.Info.Plugin == videoroom && in.Room != nil {
			found = append(found, member{session: session, handle: h, room: *in.Room, viewer: in.Type == "subscriber"})
		}
	}
	return found, nil
}

// end ends the sessions of the room's members, or of its viewers alone. A session that is in another room too loses only its handle in
// this one. What is gone already is success.
func (c *Client) end(ctx context.Context, address string, all []member, room roomID, viewersOnly bool) error {
	elsewhere := map[uint64]bool{}
	for _, m := range all {
		if m.room != room {
			elsewhere[m.session] = true
		}
	}
	ended := map[uint64]bool{}
	for _, m := range all {
		if m.room != room || (viewersOnly && !m.viewer) || ended[m.session] {
			continue
		}
		verb, path := "destroy_session", fmt.Sprintf("/%d", m.session)
		if elsewhere[m.session] {
			verb, path = "detach_handle", fmt.Sprintf("/%d/%d", m.session, m.handle)
		} else {
			ended[m.session] = true
		}
		if _, err := c.ask(ctx, address, verb, path, nil); err != nil && !isCode(err, coreNoSession, coreNoHandle) {
			return err
		}
	}
	return nil
}
