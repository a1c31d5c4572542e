package januscli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	neturl "net/url"
	"strconv"
	"sync"
	"sync/atomic"
)

// Options say how to reach a Janus.
type Options struct {
	APISecret string       // "" = none is wanted
	Token     string       // "" = none is wanted
	HTTP      *http.Client // default http.DefaultClient; it must not time out before a long poll does (30 s)
}

// Session is one handle at the videoroom and the client session that it belongs to. Its methods may be called from any
// goroutine; those that wait for an event wait their turn.
type Session struct {
	*session
	handle uint64
}

// session is what the handles of one session share.
type session struct {
	url  string // of the Janus API, without the session
	o    Options
	id   uint64
	turn atomic.Int64

	polling sync.Mutex
	events  []event // received and not yet asked for; under polling
}

// Error is a definite refusal by Janus or its videoroom.
type Error struct {
	Code   int
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("janus refused (%d): %s", e.Code, e.Reason) }

// Open creates a session at a Janus API such as http://127.0.0.1:8088/janus and attaches it to the videoroom.
func Open(ctx context.Context, url string, o Options) (*Session, error) {
	if o.HTTP == nil {
		o.HTTP = http.DefaultClient
	}
	s := &Session{session: &session{url: url, o: o}}
	r, err := s.post(ctx, url, map[string]any{"janus": "create"})
	if err != nil {
		return nil, fmt.Errorf("create a session: %w", err)
	}
	s.id = r.Data.ID
	attached, err := s.Attach(ctx)
	if err != nil {
		return nil, errors.Join(err, s.Close(context.WithoutCancel(ctx)))
	}
	return attached, nil
}

// Attach returns one more handle of the same session, which can be in another room.
func (s *Session) Attach(ctx context.Context) (*Session, error) {
	r, err := s.post(ctx, s.path(), map[string]any{"janus": "attach", "plugin": "janus.plugin.videoroom"})
	if err != nil {
		return nil, fmt.Errorf("attach to the videoroom: %w", err)
	}
	return &Session{session: s.session, handle: r.Data.ID}, nil
}

// ID returns the session's id as the admin API lists it.
func (s *Session) ID() uint64 { return s.id }

// Ask sends a videoroom request that is answered at once (list, exists, create, destroy…) and returns its answer.
func (s *Session) Ask(ctx context.Context, request map[string]any) (map[string]any, error) {
	r, err := s.message(ctx, request)
	if err != nil {
		return nil, err
	}
	return r.Plugin.Data, nil
}

// Join enters a room as one who may send, and sends nothing. The room is its Janus id: a number, a
// string or raw JSON. It returns when the videoroom has let it in.
func (s *Session) Join(ctx context.Context, room any, pin string) error {
	request := map[string]any{"request": "join", "ptype": "publisher", "room": room}
	if pin != "" {
		request["pin"] = pin
	}
	if err := s.await(ctx, request); err != nil {
		return fmt.Errorf("join room %v: %w", room, err)
	}
	return nil
}

// Watch subscribes to a feed of the room that sends something, or to its dummy publisher, and returns once Janus has accepted
// the request. What comes of it is not waited for: on a machine with no interface but loopback Janus cannot make an offer
// and says nothing at all, although the handle watches from then on.
func (s *Session) Watch(ctx context.Context, room any, pin string, feed any) error {
	request := map[string]any{"request": "join", "ptype": "subscriber", "room": room, "streams": []any{map[string]any{"feed": feed}}}
	if pin != "" {
		request["pin"] = pin
	}
	if _, err := s.message(ctx, request); err != nil {
		return fmt.Errorf("watch feed %v of room %v: %w", feed, room, err)
	}
	return nil
}

// Leave leaves the room that was joined.
func (s *Session) Leave(ctx context.Context) error {
	if err := s.await(ctx, map[string]any{"request": "leave"}); err != nil {
		return fmt.Errorf("leave the room: %w", err)
	}
	return nil
}

// KeepAlive tells Janus once that the session lives. Janus ends one that it has heard nothing of for its
// session_timeout (60 s by default). An *Error with code 458 says that the session is gone.
func (s *Session) KeepAlive(ctx context.Context) error {
	if _, err := s.post(ctx, s.path(), map[string]any{"janus": "keepalive"}); err != nil {
		return fmt.Errorf("keep the session alive: %w", err)
	}
	return nil
}

// Close ends the session, and with it its place in any room.
func (s *Session) Close(ctx context.Context) error {
	if _, err := s.post(ctx, s.path(), map[string]any{"janus": "destroy"}); err != nil {
		return fmt.Errorf("end the session: %w", err)
	}
	return nil
}

// event is what Janus sends, as an answer or by itself.
type event struct {
	Janus       string `json:"janus"`
	Transaction string `json:"transaction"`
	Data        struct {
		ID uint64 `json:"id"`
	} `json:"data"`
	Error  *Error `json:"error"`
	Plugin struct {
		Data map[string]any `json:"data"`
	} `json:"plugindata"`
}

func (s *session) path() string { return s.url + "/" + strconv.FormatUint(s.id, 10) }

func (s *Session) message(ctx context.Context, body map[string]any) (event, error) {
	return s.post(ctx, s.path()+"/"+strconv.FormatUint(s.handle, 10), map[string]any{"janus": "message", "body": body})
}

// await sends a request whose outcome comes as an event, and waits for it.
func (s *Session) await(ctx context.Context, request map[string]any) error {
	sent, err := s.message(ctx, request)
	if err != nil {
		return err
	}
	s.polling.Lock()
	defer s.polling.Unlock()
	for {
		for i, e := range s.events {
			if e.Transaction == sent.Transaction {
				s.events = append(s.events[:i], s.events[i+1:]...)
				return e.refusal()
			}
		}
		more, err := s.poll(ctx)
		if err != nil {
			return err
		}
		s.events = append(s.events, more...)
	}
}

// poll takes the events that have come, or waits up to 30 s for one.
func (s *session) poll(ctx context.Context) ([]event, error) {
	url := s.path() + "?maxev=10"
	if s.o.APISecret != "" {
		url += "&apisecret=" + s.o.APISecret
	}
	if s.o.Token != "" {
		url += "&token=" + neturl.QueryEscape(s.o.Token)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	var events []event
	if err := s.do(req, &events); err != nil {
		return nil, fmt.Errorf("wait for events: %w", err)
	}
	return events, nil
}

func (s *session) post(ctx context.Context, url string, body map[string]any) (event, error) {
	body["transaction"] = "t" + strconv.FormatInt(s.turn.Add(1), 10)
	if s.o.APISecret != "" {
		body["apisecret"] = s.o.APISecret
	}
	if s.o.Token != "" {
		body["token"] = s.o.Token
	}
	b, err := json.Marshal(body)
	if err != nil {
		return event{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(b))
	if err != nil {
		return event{}, err
	}
	var e event
	if err := s.do(req, &e); err != nil {
		return event{}, err
	}
	return e, e.refusal()
}

func (s *session) do(req *http.Request, into any) error {
	resp, err := s.o.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("janus answered %s", resp.Status)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber() // ids need more than a float64
	return d.Decode(into)
}

// refusal returns the error that the event carries, of the core or of the plugin.
func (e event) refusal() error {
	if e.Error != nil {
		return e.Error
	}
	n, ok := e.Plugin.Data["error_code"].(json.Number)
	if !ok {
		return nil
	}
	code, err := n.Int64()
	if err != nil {
		return err
	}
	reason, _ := e.Plugin.Data["error"].(string)
	return &Error{Code: int(code), Reason: reason}
}
