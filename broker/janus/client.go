package janus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/roomscaler/roomscaler/broker"
)

// DefaultSecret is the admin secret that Janus comes with. Everybody knows it.
const DefaultSecret = "janusoverlord"

// maxReply bounds an answer: about 30,000 rooms with long names.
const maxReply = 32 << 20

// Client asks the admin API of any number of Janus servers that share their secrets. All methods are safe for
// concurrent use, block until the answer or the end of the context, and retry nothing.
type Client struct {
	http    *http.Client
	secrets atomic.Pointer[secrets]
	turn    atomic.Int64
}

type secrets struct{ admin, key string }

// NewClient returns a client. With a nil HTTP client it makes one that takes no proxy. Redirects are never followed: they would
// carry the secret elsewhere.
func NewClient(adminSecret, adminKey string, h *http.Client) *Client {
	own := http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: scanWidth, IdleConnTimeout: time.Minute}}
	if h != nil {
		own = *h
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c := &Client{http: &own}
	c.SetSecrets(adminSecret, adminKey)
	return c
}

// SetSecrets changes the secrets for the requests to come.
func (c *Client) SetSecrets(adminSecret, adminKey string) {
	c.secrets.Store(&secrets{admin: adminSecret, key: adminKey})
}

// adminKey returns the videoroom's admin_key as configured here; "" is none.
func (c *Client) adminKey() string { return c.secrets.Load().key }

// Sessions returns the number of client sessions on the server.
func (c *Client) Sessions(ctx context.Context, address string) (int, error) {
	ids, err := c.sessions(ctx, address)
	return len(ids), err
}

// SetAccepting opens or closes the server for new sessions. Sessions that are there keep all their rights, and a
// restart of the server opens it again.
func (c *Client) SetAccepting(ctx context.Context, address string, accept bool) error {
	r, err := c.ask(ctx, address, "accept_new_sessions", "", map[string]any{"accept": accept})
	if err != nil {
		return err
	}
	if r.Accept == nil || *r.Accept != accept {
		return badAnswer("accept_new_sessions", errors.New("the answer does not confirm it"))
	}
	return nil
}

// sessions lists the ids of all sessions. It also proves the secret, which ping and info do not.
func (c *Client) sessions(ctx context.Context, address string) ([]uint64, error) {
	r, err := c.ask(ctx, address, "list_sessions", "", nil)
	if err != nil {
		return nil, err
	}
	if r.Sessions == nil {
		return nil, badAnswer("list_sessions", errors.New("the answer has no sessions"))
	}
	return *r.Sessions, nil
}

// sessionTimeout returns how long the server keeps a session that it hears nothing of.
func (c *Client) sessionTimeout(ctx context.Context, address string) (time.Duration, error) {
	r, err := c.ask(ctx, address, "get_status", "", nil)
	if err != nil {
		return 0, err
	}
	if r.Status == nil || r.Status.SessionTimeout < 0 || r.Status.SessionTimeout > 1<<31 {
		return 0, badAnswer("get_status", errors.New("the answer has no session_timeout"))
	}
	return time.Duration(r.Status.SessionTimeout) * time.Second, nil
}

// ask sends one admin request to the address plus path and returns the answer of the core.
func (c *Client) ask(ctx context.Context, address, verb, path string, more map[string]any) (reply, error) {
	transaction := "r" + strconv.FormatInt(c.turn.Add(1), 10)
	body := map[string]any{"janus": verb, "transaction": transaction, "admin_secret": c.secrets.Load().admin}
	for k, v := range more {
		body[k] = v
	}
	b, err := json.Marshal(body)
	if err != nil {
		return reply{}, refused("", "", fmt.Errorf("encode %s: %w", verb, err))
	}
	status, answer, err := c.send(ctx, address+path, verb, b, func(words string) string { return c.hide(words, more) })
	if err != nil {
		return reply{}, c.explain(ctx, address, err)
	}
	r, err := readReply(verb, transaction, status, answer)
	if err != nil {
		return reply{}, err
	}
	if r.Error != nil {
		r.Error.shown = c.hide(r.Error.Reason, more)
		return reply{}, readCoreError(verb, r.Error)
	}
	return r, nil
}

// hide takes the secrets out of words that came from outside: a server that only echoes what was asked must not bring
// them into a log.
func (c *Client) hide(words string, asked map[string]any) string {
	s := c.secrets.Load()
	secrets := []any{s.admin, s.key}
	if request, ok := asked["request"].(map[string]any); ok {
		secrets = append(secrets, request["secret"], request["pin"])
	}
	for _, secret := range secrets {
		if secret, ok := secret.(string); ok && secret != "" {
			words = strings.ReplaceAll(words, secret, "[hidden]")
		}
	}
	return printable(words)
}

// send posts the body. An error is a *sendError, in words that hide has passed.
func (c *Client) send(ctx context.Context, url, verb string, body []byte, hide func(string) string) (status int, answer []byte, err error) {
	var sent atomic.Bool // any byte of the request may have left
	fail := func(err error) (int, []byte, error) {
		return 0, nil, &sendError{verb: verb, sent: sent.Load(), shown: hide(err.Error()), err: err}
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return fail(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return fail(err)
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	if err != nil {
		return fail(fmt.Errorf("read the answer: %w", err))
	}
	if len(answer) > maxReply {
		return fail(errTooLong)
	}
	return resp.StatusCode, answer, nil
}

var errTooLong = fmt.Errorf("the answer is longer than %d MiB", maxReply>>20)

// fault returns err as the *broker.FaultError it is.
func fault(err error) *broker.FaultError {
	var f *broker.FaultError
	errors.As(err, &f)
	return f
}
