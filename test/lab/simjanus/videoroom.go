package simjanus

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

type room struct {
	id          any // json.Number or string, as the server answers it
	description string
	secret, pin string
	private     bool
	publishers  int    // at most so many may send
	dummy       uint64 // id of the dummy publisher; 0 = none
	members     []*handle
}

type object = map[string]any

// videoroom does one request that is answered at once; ok is false for one that needs a session.
func (s *Server) videoroom(req object) (answer object, f *failure, ok bool) {
	verb, isText := req["request"].(string)
	if !isText {
		return nil, fail(429, "Missing mandatory element (request)"), true
	}
	switch verb {
	case "create":
		answer, f = s.create(req)
	case "destroy":
		answer, f = s.destroy(req)
	case "edit":
		var r *room
		if r, f = s.find(req, true); f == nil {
			if d, ok := req["new_description"].(string); ok {
				r.description = d
			}
			answer = object{"videoroom": "edited", "room": r.id, "permanent": false}
		}
	case "list":
		answer, f = s.list(req)
	case "exists":
		var id any
		if id, f = s.roomID(req); f == nil {
			answer = object{"videoroom": "success", "room": id, "exists": s.rooms[text(id)] != nil}
		}
	case "listparticipants":
		answer, f = s.participants(req)
	case "kick":
		answer, f = s.kick(req)
	default:
		return nil, fail(423, fmt.Sprintf("Unknown request '%s'", verb)), false
	}
	return answer, f, true
}

// roomID reads a mandatory room id in the form that the server is set to.
func (s *Server) roomID(req object) (any, *failure) {
	id, there := req["room"]
	if !there {
		return nil, fail(429, "Missing mandatory element (room)")
	}
	if s.c.StringIDs {
		if t, ok := id.(string); ok {
			return t, nil
		}
		return nil, fail(430, "Invalid element type (room should be a string)")
	}
	if n, ok := id.(json.Number); ok {
		if _, err := strconv.ParseUint(n.String(), 10, 63); err == nil {
			return n, nil
		}
	}
	return nil, fail(430, "Invalid element type (room should be a positive integer)")
}

// find returns the room of a request, if need be only to whoever knows its secret.
func (s *Server) find(req object, guarded bool) (*room, *failure) {
	id, f := s.roomID(req)
	if f != nil {
		return nil, f
	}
	r := s.rooms[text(id)]
	if r == nil {
		return nil, fail(426, fmt.Sprintf("No such room (%s)", text(id)))
	}
	if guarded && r.secret != "" {
		secret, ok := req["secret"].(string)
		if !ok {
			return nil, fail(429, "Missing mandatory element (secret)")
		}
		if secret != r.secret {
			return nil, fail(433, "Unauthorized (wrong secret)")
		}
	}
	return r, nil
}

func (s *Server) create(req object) (object, *failure) {
	if s.c.AdminKey != "" {
		key, ok := req["admin_key"].(string)
		if !ok {
			return nil, fail(429, "Missing mandatory element (admin_key)")
		}
		if key != s.c.AdminKey {
			return nil, fail(433, "Unauthorized (wrong admin_key)")
		}
	}
	r := &room{publishers: 3}
	if _, given := req["room"]; given {
		id, f := s.roomID(req)
		if f != nil {
			return nil, f
		}
		r.id = id
	}
	if r.id == nil || r.id == json.Number("0") {
		n := strconv.FormatUint(freshID(map[uint64]bool{}), 10)
		r.id = json.Number(n)
		if s.c.StringIDs {
			r.id = n
		}
	}
	if s.rooms[text(r.id)] != nil {
		return nil, fail(427, fmt.Sprintf("Room %s already exists", text(r.id)))
	}
	r.description = "Room " + text(r.id)
	for field, into := range map[string]*string{"description": &r.description, "secret": &r.secret, "pin": &r.pin} {
		v, given := req[field]
		t, isText := v.(string)
		switch {
		case given && !isText:
			return nil, fail(430, fmt.Sprintf("Invalid element type (%s should be a string)", field))
		case given:
			*into = t
		}
	}
	if n, ok := req["publishers"].(json.Number); ok {
		p, err := strconv.Atoi(n.String())
		if err != nil || p < 0 {
			return nil, fail(430, "Invalid element type (publishers should be a positive integer)")
		}
		r.publishers = p
	}
	r.private, _ = req["is_private"].(bool)
	if dummy, _ := req["dummy_publisher"].(bool); dummy {
		r.dummy = freshID(map[uint64]bool{})
	}
	s.rooms[text(r.id)] = r
	return object{"videoroom": "created", "room": r.id, "permanent": false}, nil
}

// destroy tells those who may send; those who watch hear nothing and keep their handles.
func (s *Server) destroy(req object) (object, *failure) {
	r, f := s.find(req, true)
	if f != nil {
		return nil, f
	}
	delete(s.rooms, text(r.id))
	for _, h := range slices.Clone(r.members) {
		if h.role == "publisher" {
			h.event("", object{"videoroom": "destroyed", "room": r.id})
			h.room = nil
		}
	}
	return object{"videoroom": "destroyed", "room": r.id, "permanent": false}, nil
}

func (s *Server) list(req object) (object, *failure) {
	all := false
	if key, given := req["admin_key"]; given && s.c.AdminKey != "" {
		if key != s.c.AdminKey {
			return nil, fail(433, "Unauthorized (wrong admin_key)")
		}
		all = true
	}
	list := []object{}
	for _, r := range s.rooms {
		if r.private && !all {
			continue
		}
		list = append(list, object{"room": r.id, "description": r.description, "pin_required": r.pin != "", "is_private": r.private,
			"max_publishers": r.publishers, "num_participants": r.people(), "record": false, "dummy_publisher": r.dummy != 0})
	}
	slices.SortFunc(list, func(a, b object) int { return strings.Compare(text(a["room"]), text(b["room"])) })
	return object{"videoroom": "success", "list": list}, nil
}

func (s *Server) participants(req object) (object, *failure) {
	r, f := s.find(req, false)
	if f != nil {
		return nil, f
	}
	list := []object{}
	if r.dummy != 0 {
		list = append(list, object{"id": r.dummy, "display": "Dummy publisher", "publisher": true, "dummy": true})
	}
	for _, h := range r.senders() {
		p := object{"id": h.user, "publisher": false}
		if h.display != "" {
			p["display"] = h.display
		}
		list = append(list, p)
	}
	return object{"videoroom": "participants", "room": r.id, "participants": list}, nil
}

func (s *Server) kick(req object) (object, *failure) {
	r, f := s.find(req, true)
	if f != nil {
		return nil, f
	}
	user, ok := number(req["id"])
	if !ok {
		return nil, fail(429, "Missing mandatory element (id)")
	}
	for _, h := range r.senders() {
		if h.user == user {
			s.leave(h)
			h.event("", object{"videoroom": "event", "room": r.id, "leaving": "ok", "reason": "kicked"})
			return object{"videoroom": "success"}, nil
		}
	}
	return nil, fail(428, fmt.Sprintf("No such user %d in room %s", user, text(r.id)))
}

// message does a request that is acknowledged at once and answered by an event.
func (s *Server) message(h *handle, transaction string, req object) {
	answer, f := s.async(h, req)
	if f != nil {
		answer = f.ofPlugin()
	}
	h.event(transaction, answer)
}

func (s *Server) async(h *handle, req object) (object, *failure) {
	switch req["request"] {
	case "join":
		return s.join(h, req)
	case "leave":
		if h.role != "publisher" || h.room == nil {
			return nil, fail(424, "Can't invoke leave without joining")
		}
		id := h.room
		s.leave(h)
		return object{"videoroom": "event", "room": id, "leaving": "ok"}, nil
	}
	return nil, fail(423, fmt.Sprintf("Unknown request '%v'", req["request"]))
}

func (s *Server) join(h *handle, req object) (object, *failure) {
	if h.role != "" {
		return nil, fail(425, "Already in as a "+h.role+" on this handle")
	}
	r, f := s.find(req, false)
	if f != nil {
		return nil, f
	}
	if pin, given := req["pin"].(string); r.pin != "" && pin != r.pin {
		if !given {
			return nil, fail(429, "Missing mandatory element (pin)")
		}
		return nil, fail(433, "Unauthorized (wrong pin)")
	}
	switch req["ptype"] {
	case "publisher":
		h.user = freshID(map[uint64]bool{})
		if id, ok := number(req["id"]); ok {
			h.user = id
		}
		h.display, _ = req["display"].(string)
		h.role, h.room = "publisher", r.id
		r.members = append(r.members, h)
		return object{"videoroom": "joined", "room": r.id, "description": r.description, "id": h.user, "private_id": h.user >> 21, "publishers": []any{}}, nil
	case "subscriber": // nobody here sends anything that could be watched, so any member will do
		if r.people() == 0 {
			return nil, fail(428, "No such feed")
		}
		h.role, h.room = "subscriber", r.id
		r.members = append(r.members, h)
		return object{"videoroom": "attached", "room": r.id, "streams": []any{}}, nil
	}
	return nil, fail(430, "Invalid element (ptype)")
}

// leave takes the handle out of its room. A room outlives its last member.
func (s *Server) leave(h *handle) {
	if h.room == nil {
		return
	}
	if r := s.rooms[text(h.room)]; r != nil {
		r.members = slices.DeleteFunc(r.members, func(m *handle) bool { return m == h })
	}
	h.room = nil
}

func (r *room) senders() []*handle {
	var list []*handle
	for _, h := range r.members {
		if h.role == "publisher" {
			list = append(list, h)
		}
	}
	return list
}

// people counts as Janus does: all who may send, the dummy included.
func (r *room) people() int {
	n := len(r.senders())
	if r.dummy != 0 {
		n++
	}
	return n
}

// event sends the client an event of the plugin.
func (h *handle) event(transaction string, data object) {
	e := object{"janus": "event", "session_id": h.session.id, "sender": h.id, "plugindata": object{"plugin": plugin, "data": data}}
	if transaction != "" {
		e["transaction"] = transaction
	}
	h.session.push(e)
}

func (f *failure) ofPlugin() object {
	return object{"videoroom": "event", "error_code": f.code, "error": f.reason}
}

func text(id any) string { return fmt.Sprint(id) }

func number(v any) (uint64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	u, err := strconv.ParseUint(n.String(), 10, 64)
	return u, err == nil
}
