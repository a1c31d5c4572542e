package simjanus

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxBody is the most that a request may hold, in bytes.
const maxBody = 1 << 20

// reply is an answer under construction: errors of the core become answers too, with status 200.
type reply struct {
	w           http.ResponseWriter
	session     uint64 // named in the answer; 0 = none
	transaction string
}

func (r reply) send(o object) {
	if r.session != 0 {
		o["session_id"] = r.session
	}
	if r.transaction != "" {
		o["transaction"] = r.transaction
	}
	writeJSON(r.w, o)
}

func (r reply) fail(f *failure) {
	r.send(object{"janus": "error", "error": object{"code": f.code, "reason": f.reason}})
}

func writeJSON(w http.ResponseWriter, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(b) // a client that has gone away is none of our business
}

// path splits what follows the base path into a session and a handle.
func path(url, base string) (session, handle uint64, ok bool) {
	rest, ok := strings.CutPrefix(url, base)
	if !ok || rest != "" && rest[0] != '/' {
		return 0, 0, false
	}
	parts := strings.Split(strings.Trim(rest, "/"), "/")
	if len(parts) > 2 {
		return 0, 0, false
	}
	ids := [2]uint64{}
	for i, p := range parts {
		if p == "" {
			continue
		}
		n, err := strconv.ParseUint(p, 10, 64)
		if err != nil {
			return 0, 0, false
		}
		ids[i] = n
	}
	return ids[0], ids[1], true
}

// read decodes a request; a reply has been sent when it returns false.
func read(w http.ResponseWriter, r *http.Request) (object, reply, bool) {
	rep := reply{w: w}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return nil, rep, false
	}
	if len(body) == 0 { // Janus closes the connection without an answer
		panic(http.ErrAbortHandler)
	}
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.UseNumber()
	var req object
	if err := d.Decode(&req); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			rep.fail(fail(455, "JSON error: not an object"))
		} else {
			rep.fail(fail(454, "JSON error: "+err.Error()))
		}
		return nil, rep, false
	}
	transaction, ok := req["transaction"].(string)
	if !ok {
		rep.fail(fail(456, "Missing mandatory element (transaction)"))
		return nil, rep, false
	}
	rep.transaction = transaction
	if _, ok := req["janus"].(string); !ok {
		rep.fail(fail(456, "Missing mandatory element (janus)"))
		return nil, rep, false
	}
	return req, rep, true
}

// API is the handler of the Janus API at /janus.
func (s *Server) API() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/janus/info" && r.Method == http.MethodGet {
			writeJSON(w, s.info())
			return
		}
		sid, hid, ok := path(r.URL.Path, "/janus")
		switch {
		case !ok || r.Method == http.MethodGet && sid == 0:
			w.WriteHeader(http.StatusNotFound)
		case r.Method == http.MethodGet:
			s.poll(w, r, sid)
		default:
			if req, rep, ok := read(w, r); ok {
				s.api(rep, sid, hid, req)
			}
		}
	})
}

func (s *Server) api(rep reply, sid, hid uint64, req object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	verb := req["janus"].(string)
	rep.session = sid
	if sid == 0 && verb == "create" && !s.accepting {
		rep.fail(fail(472, "Currently not accepting new sessions"))
		return
	}
	if s.c.APISecret != "" && verb != "ping" && verb != "info" && req["apisecret"] != s.c.APISecret {
		rep.fail(fail(403, "Unauthorized request (wrong or missing secret/token)"))
		return
	}
	if sid == 0 {
		switch verb {
		case "ping":
			rep.send(object{"janus": "pong"})
		case "info":
			rep.send(s.infoLocked())
		case "create":
			id, _ := number(req["id"])
			ses, f := s.newSession(id)
			if f != nil {
				rep.fail(f)
				return
			}
			rep.send(object{"janus": "success", "data": object{"id": ses.id}})
		default:
			rep.fail(unhandled(verb))
		}
		return
	}
	ses := s.sessions[sid]
	if ses == nil {
		rep.fail(noSession(sid))
		return
	}
	ses.touch()
	h := ses.handles[hid]
	switch {
	case hid == 0 && verb == "keepalive":
		rep.send(object{"janus": "ack"})
	case hid == 0 && verb == "attach":
		if req["plugin"] != plugin {
			rep.fail(fail(460, fmt.Sprintf("No such plugin '%v'", req["plugin"])))
			return
		}
		h := &handle{id: freshID(ses.handles), session: ses}
		ses.handles[h.id] = h
		rep.send(object{"janus": "success", "data": object{"id": h.id}})
	case hid == 0 && verb == "destroy":
		s.dropSession(ses)
		rep.send(object{"janus": "success"})
	case hid != 0 && h == nil:
		rep.fail(noHandle(hid, sid))
	case h != nil && verb == "detach":
		s.detach(h)
		rep.send(object{"janus": "success"})
	case h != nil && verb == "message":
		s.toPlugin(rep, h, req)
	default:
		rep.fail(unhandled(verb))
	}
}

func (s *Server) toPlugin(rep reply, h *handle, req object) {
	body, ok := req["body"].(object)
	if !ok {
		rep.fail(fail(456, "Missing mandatory element (body)"))
		return
	}
	answer, f, ok := s.videoroom(body)
	if !ok {
		rep.send(object{"janus": "ack"})
		s.message(h, rep.transaction, body)
		return
	}
	if f != nil {
		answer = f.ofPlugin()
	}
	rep.send(object{"janus": "success", "sender": h.id, "plugindata": object{"plugin": plugin, "data": answer}})
}

func unhandled(verb string) *failure {
	return fail(457, fmt.Sprintf("Unhandled request '%s' at this path", verb))
}

// poll answers with the session's events, or with a keepalive after pollTime.
func (s *Server) poll(w http.ResponseWriter, r *http.Request, sid uint64) {
	if s.c.APISecret != "" && r.URL.Query().Get("apisecret") != s.c.APISecret {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	limit, err := strconv.Atoi(r.URL.Query().Get("maxev"))
	if err != nil || limit < 1 {
		limit = 1
	}
	timeout := time.NewTimer(pollTime)
	defer timeout.Stop()
	for first := true; ; first = false {
		s.mu.Lock()
		ses := s.sessions[sid]
		if ses == nil {
			s.mu.Unlock()
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if first {
			ses.touch()
		}
		n := min(limit, len(ses.events))
		events := ses.events[:n:n]
		ses.events = ses.events[n:]
		s.mu.Unlock()
		if n > 0 {
			writeJSON(w, events)
			return
		}
		select {
		case <-ses.wake:
		case <-timeout.C:
			writeJSON(w, []any{object{"janus": "keepalive"}})
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (s *Server) info() object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.infoLocked()
}

func (s *Server) infoLocked() object {
	return object{"janus": "server_info", "transaction": "info", "name": "Simulated media server", "version": 1102, "version_string": "1.1.2",
		"accepting-new-sessions": s.accepting, "session-timeout": int(s.c.SessionTimeout.Seconds()), "reclaim-session-timeout": 0, "server-name": s.c.Name,
		"static-event-loops": 0, "api_secret": s.c.APISecret != "", "auth_token": false, "event_handlers": false,
		"plugins": object{plugin: object{"name": "Simulated VideoRoom", "version": 9, "version_string": "0.0.9"}}}
}
