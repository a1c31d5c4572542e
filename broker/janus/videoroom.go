package janus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/roomscaler/roomscaler/broker"
)

const (
	verbPlugin = "message_plugin"
	videoroom  = "janus.plugin.videoroom"
)

// Codes of the videoroom.
const (
	roomMissing      = 426
	roomExists       = 427
	roomElement      = 429 // a mandatory element is missing
	roomElementType  = 430
	roomUnauthorized = 433
)

// roomID is a room's id: a number, or a string where string_ids is set.
type roomID struct {
	text    string
	strings bool
}

func idOf(at broker.Target, e broker.Epoch) roomID {
	return roomID{text: e.String(), strings: at.StringIDs}
}

func (id roomID) MarshalJSON() ([]byte, error) {
	if id.strings {
		return json.Marshal(id.text)
	}
	return []byte(id.text), nil
}

// UnmarshalJSON keeps every digit: ids reach beyond what a float64 holds.
func (id *roomID) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		id.strings = true
		return json.Unmarshal(b, &id.text)
	}
	n, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil {
		return fmt.Errorf("a room id is neither a string nor a positive integer: %w", err)
	}
	id.text, id.strings = strconv.FormatUint(n, 10), false
	return nil
}

// pluginReply is what the videoroom answers.
type pluginReply struct {
	ErrorCode    int            `json:"error_code"`
	Error        string         `json:"error"`
	Exists       *bool          `json:"exists"`
	List         *[]listedRoom  `json:"list"`
	Participants *[]participant `json:"participants"`
}

type listedRoom struct {
	ID          *roomID `json:"room"`
	Description string  `json:"description"`
	People      *int    `json:"num_participants"`
	Dummy       bool    `json:"dummy_publisher"`
}

// publishers counts who may send. The plugin counts its own dummy as one.
func (r listedRoom) publishers() int {
	if r.Dummy {
		return max(0, *r.People-1)
	}
	return *r.People
}

type participant struct {
	Dummy bool `json:"dummy"`
}

// message asks the videoroom. A refusal by the plugin is an error for which isCode holds.
func (c *Client) message(ctx context.Context, address string, request map[string]any) (pluginReply, error) {
	what := fmt.Sprintf("videoroom %v", request["request"])
	asked := map[string]any{"plugin": videoroom, "request": request}
	r, err := c.ask(ctx, address, verbPlugin, "", asked)
	if err != nil {
		return pluginReply{}, err
	}
	var p pluginReply
	if len(r.Response) == 0 || json.Unmarshal(r.Response, &p) != nil {
		return pluginReply{}, badAnswer(what, errors.New("the answer is not what the videoroom says"))
	}
	if p.ErrorCode != 0 {
		return pluginReply{}, readPluginError(what, &coreError{Code: p.ErrorCode, Reason: p.Error, shown: c.hide(p.Error, asked)})
	}
	return p, nil
}

func readPluginError(what string, e *coreError) error {
	err := fmt.Errorf("%s: %w", what, e)
	switch {
	case e.Code == roomElement && e.Reason == "Missing mandatory element (admin_key)":
		return refused(broker.FaultAdminKeyMissing, adviceNoKey, err)
	case e.Code == roomUnauthorized && e.Reason == "Unauthorized (wrong admin_key)":
		return refused(broker.FaultAdminKeyWrong, adviceWrongKey, err)
	case e.Code == roomElementType && (e.Reason == "Invalid element type (room should be a string)" || e.Reason == "Invalid element type (room should be a positive integer)"):
		return refused("", adviceIDs, err)
	}
	return refused("", "", err)
}

// rooms lists the rooms that the admin key shows; "" shows the public ones.
func (c *Client) rooms(ctx context.Context, address, adminKey string) ([]listedRoom, error) {
	request := map[string]any{"request": "list"}
	if adminKey != "" {
		request["admin_key"] = adminKey
	}
	p, err := c.message(ctx, address, request)
	if err != nil {
		return nil, err
	}
	if p.List == nil {
		return nil, badAnswer("videoroom list", errors.New("the answer has no list"))
	}
	for _, r := range *p.List {
		if r.ID == nil || r.People == nil || *r.People < 0 {
			return nil, badAnswer("videoroom list", errors.New("a room has no id or no num_participants"))
		}
	}
	return *p.List, nil
}

// exists asks by id, which also tells of private rooms.
func (c *Client) exists(ctx context.Context, address string, id roomID) (bool, error) {
	p, err := c.message(ctx, address, map[string]any{"request": "exists", "room": id})
	if err != nil {
		return false, err
	}
	if p.Exists == nil {
		return false, badAnswer("videoroom exists", errors.New("the answer does not say"))
	}
	return *p.Exists, nil
}

// publishers counts who may send in one room, and whether the room is there.
func (c *Client) publishers(ctx context.Context, address string, id roomID) (n int, there bool, err error) {
	p, err := c.message(ctx, address, map[string]any{"request": "listparticipants", "room": id})
	if isCode(err, roomMissing) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	if p.Participants == nil {
		return 0, false, badAnswer("videoroom listparticipants", errors.New("the answer has no participants"))
	}
	for _, who := range *p.Participants {
		if !who.Dummy {
			n++
		}
	}
	return n, true, nil
}
