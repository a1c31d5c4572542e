package simjanus

import (
	"fmt"
	"net/http"
)

// Admin is the handler of the admin API at /admin.
func (s *Server) Admin() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/admin/info" && r.Method == http.MethodGet {
			writeJSON(w, s.info())
			return
		}
		sid, hid, ok := path(r.URL.Path, "/admin")
		switch {
		case !ok:
			w.WriteHeader(http.StatusNotFound)
		case r.Method == http.MethodGet:
			reply{w: w}.fail(fail(454, "Request payload missing"))
		default:
			if req, rep, ok := read(w, r); ok {
				s.admin(rep, sid, hid, req)
			}
		}
	})
}

func (s *Server) admin(rep reply, sid, hid uint64, req object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	verb := req["janus"].(string)
	switch {
	case sid == 0 && verb == "ping": // these two need no secret
		rep.send(object{"janus": "pong"})
		return
	case sid == 0 && verb == "info":
		rep.send(s.infoLocked())
		return
	case req["admin_secret"] != s.c.AdminSecret:
		rep.fail(fail(403, "Unauthorized request (wrong or missing secret/token)"))
		return
	}
	if sid == 0 {
		s.adminServer(rep, verb, req)
		return
	}
	rep.session = sid
	ses := s.sessions[sid]
	if ses == nil {
		rep.fail(noSession(sid))
		return
	}
	if hid == 0 {
		switch verb {
		case "list_handles":
			rep.send(object{"janus": "success", "handles": keys(ses.handles)})
		case "destroy_session":
			s.dropSession(ses)
			rep.send(object{"janus": "success"})
		default:
			rep.fail(unhandled(verb))
		}
		return
	}
	h := ses.handles[hid]
	if h == nil {
		rep.fail(noHandle(hid, sid))
		return
	}
	switch verb {
	case "handle_info":
		rep.send(object{"janus": "success", "handle_id": hid, "info": h.info()})
	case "detach_handle", "hangup_webrtc":
		if verb == "detach_handle" {
			s.detach(h)
		}
		ses.push(object{"janus": map[bool]string{true: "detached", false: "hangup"}[verb == "detach_handle"], "session_id": sid, "sender": hid})
		rep.send(object{"janus": "success"})
	default:
		rep.fail(unhandled(verb))
	}
}

func (s *Server) adminServer(rep reply, verb string, req object) {
	switch verb {
	case "get_status":
		rep.send(object{"janus": "success", "status": object{"token_auth": false, "session_timeout": int(s.c.SessionTimeout.Seconds()), "reclaim_session_timeout": 0, "log_level": 4}})
	case "list_sessions":
		rep.send(object{"janus": "success", "sessions": keys(s.sessions)})
	case "loops_info": // as without event_loops
		rep.send(object{"janus": "success", "loops": []any{}})
	case "accept_new_sessions":
		accept, ok := req["accept"].(bool)
		if !ok {
			rep.fail(fail(456, "Missing mandatory element (accept)"))
			return
		}
		s.accepting = accept
		rep.send(object{"janus": "success", "accept": accept})
	case "message_plugin":
		body, ok := req["request"].(object)
		switch {
		case req["plugin"] != plugin:
			rep.fail(fail(460, fmt.Sprintf("Invalid plugin '%v'", req["plugin"])))
		case !ok:
			rep.fail(fail(456, "Missing mandatory element (request)"))
		default:
			answer, f, _ := s.videoroom(body)
			if f != nil {
				answer = f.ofPlugin()
			}
			rep.send(object{"janus": "success", "response": answer})
		}
	default:
		rep.fail(unhandled(verb))
	}
}

func (h *handle) info() object {
	p := object{"hangingup": 0, "destroyed": 0}
	if h.role != "" {
		p["type"] = h.role
	}
	if h.room != nil {
		p["room"] = h.room
		p["streams"] = []any{}
		if h.role == "publisher" {
			p["id"] = h.user
		}
	}
	return object{"session_id": h.session.id, "handle_id": h.id, "plugin": plugin, "plugin_specific": p}
}
