package brokerapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// MaxAnswer is the most bytes of an answer that a Client reads; a longer one is an error.
const MaxAnswer = 64 << 20

// Client calls a broker. It is safe for concurrent use, keeps no state besides
// connections and repeats nothing by itself: each call of the API may be repeated by
// its caller.
//
// A call is bounded by its context alone. An answer other than 2xx is a *Problem,
// also when it did not come from a broker (code "unknown"); any other error means that
// no whole answer came, and the call may have taken effect.
type Client struct {
	base  string
	token func() (string, error)
	http  *http.Client
}

// NewClient returns a client of the broker at base, such as http://127.0.0.1:8080.
// token is asked before each call, so that a token file may change; nil or "" sends
// none. hc nil means a client with connections of its own. Redirects are not followed.
func NewClient(base string, token func() (string, error), hc *http.Client) (*Client, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("broker URL: give one such as http://127.0.0.1:8080")
	case u.User != nil:
		return nil, errors.New("broker URL: holds a user name or password; give a token instead")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("broker URL: has a query or fragment; give scheme, host and path only")
	}
	if token == nil {
		token = func() (string, error) { return "", nil }
	}
	own := http.Client{}
	if hc != nil {
		own = *hc
	} else {
		own.Transport = &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second, ForceAttemptHTTP2: true}
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{base: strings.TrimSuffix(base, "/"), token: token, http: &own}, nil
}

// CreateRoom makes the room or returns it as it is; fresh says which.
func (c *Client) CreateRoom(ctx context.Context, pool, room string, r CreateRoom) (pin Pin, fresh bool, err error) {
	q := url.Values{}
	if r.Wait > 0 {
		q.Set("wait", r.Wait.String())
	}
	status, err := c.call(ctx, request{method: http.MethodPut, path: Path(PathRoom, pool, room), query: q, body: r, into: &pin})
	return pin, status == http.StatusCreated, err
}

// Lookup returns where the room lives; code room_not_found if nowhere. With touch it
// counts as use of the room, which keeps an empty one from expiring.
func (c *Client) Lookup(ctx context.Context, pool, room string, touch bool) (pin Pin, err error) {
	q := url.Values{}
	if !touch {
		q.Set("touch", "false")
	}
	_, err = c.call(ctx, request{method: http.MethodGet, path: Path(PathRoom, pool, room), query: q, into: &pin})
	return pin, err
}

// DeleteRoom tears the room down; none there is success. With an epoch other than 0
// it does so only if the room still has that epoch (code stale).
func (c *Client) DeleteRoom(ctx context.Context, pool, room string, epoch int64) error {
	r := request{method: http.MethodDelete, path: Path(PathRoom, pool, room)}
	if epoch != 0 {
		r.ifMatch = quoted(epoch)
	}
	_, err := c.call(ctx, r)
	return err
}

// RoomsQuery selects a page of rooms. The zero value is the first page of all rooms.
type RoomsQuery struct {
	Instance string // "" = all
	Cursor   string // of the page before
	Limit    int    // 0 = the broker's default; at most 1000
}

// Rooms returns one page of the rooms in order of their names.
func (c *Client) Rooms(ctx context.Context, pool string, rq RoomsQuery) (page Rooms, err error) {
	q := url.Values{}
	if rq.Instance != "" {
		q.Set("instance", rq.Instance)
	}
	if rq.Cursor != "" {
		q.Set("cursor", rq.Cursor)
	}
	if rq.Limit != 0 {
		q.Set("limit", strconv.Itoa(rq.Limit))
	}
	_, err = c.call(ctx, request{method: http.MethodGet, path: Path(PathRooms, pool), query: q, into: &page})
	return page, err
}

// Facts returns what a scaler needs to know of a pool.
func (c *Client) Facts(ctx context.Context, pool string) (f PoolFacts, err error) {
	_, err = c.call(ctx, request{method: http.MethodGet, path: Path(PathPool, pool), into: &f})
	return f, err
}

// PutPlan stores a scaling decision if the plan's version is ifVersion (0: there is
// none), else code plan_version. Code seal_refused comes with the refusals.
func (c *Client) PutPlan(ctx context.Context, pool string, ifVersion int64, p PutPlan) (plan Plan, err error) {
	_, err = c.call(ctx, request{method: http.MethodPut, path: Path(PathPlan, pool), ifMatch: quoted(ifVersion), body: p, into: &plan})
	return plan, err
}

// Instances returns all instances of a pool.
func (c *Client) Instances(ctx context.Context, pool string) (list Instances, err error) {
	_, err = c.call(ctx, request{method: http.MethodGet, path: Path(PathInstances, pool), into: &list})
	return list, err
}

// Instance returns one instance.
func (c *Client) Instance(ctx context.Context, pool, instance string) (in Instance, err error) {
	_, err = c.call(ctx, request{method: http.MethodGet, path: Path(PathInstance, pool, instance), into: &in})
	return in, err
}

// Drain sets or repeats the owner's mark. Once it has returned, no new room lands on
// the instance until all marks are gone.
func (c *Client) Drain(ctx context.Context, pool, instance string, r DrainRequest) (d Drain, err error) {
	_, err = c.call(ctx, request{method: http.MethodPost, path: Path(PathDrain, pool, instance), body: r, into: &d})
	return d, err
}

// DrainStatus says how far the owner's drain has come. The broker holds the answer
// until the drain is over, at most wait and at most a minute.
func (c *Client) DrainStatus(ctx context.Context, pool, instance, owner string, wait time.Duration) (d Drain, err error) {
	q := url.Values{"owner": {owner}}
	if wait > 0 {
		q.Set("wait", wait.String())
	}
	_, err = c.call(ctx, request{method: http.MethodGet, path: Path(PathDrain, pool, instance), query: q, into: &d})
	return d, err
}

// Uncordon removes the owner's mark; none there is success. Code released past the
// point of no return.
func (c *Client) Uncordon(ctx context.Context, pool, instance, owner string) error {
	_, err := c.call(ctx, request{method: http.MethodDelete, path: Path(PathDrain, pool, instance), query: url.Values{"owner": {owner}}})
	return err
}

// Lost fences an instance that will not come back and ends its pins.
func (c *Client) Lost(ctx context.Context, pool, instance string, r LostRequest) (l Lost, err error) {
	_, err = c.call(ctx, request{method: http.MethodPost, path: Path(PathLost, pool, instance), body: r, into: &l})
	return l, err
}

type request struct {
	method, path string
	query        url.Values
	ifMatch      string
	body         any // sent as JSON; nil for none
	into         any // the answer's target; nil drops it
}

func (c *Client) call(ctx context.Context, r request) (status int, err error) {
	status, err = c.send(ctx, r)
	var p *Problem
	if err != nil && !errors.As(err, &p) {
		err = fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	return status, err
}

func (c *Client) send(ctx context.Context, r request) (int, error) {
	var body io.Reader
	if r.body != nil {
		b, err := json.Marshal(r.body)
		if err != nil {
			return 0, fmt.Errorf("encoding the request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return 0, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json, application/problem+json")
	if r.ifMatch != "" {
		req.Header.Set("If-Match", r.ifMatch)
	}
	token, err := c.token()
	if err != nil {
		return 0, fmt.Errorf("reading the token: %w", err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // the caller says method and path
		}
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return resp.StatusCode, readProblem(resp)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, MaxAnswer+1))
	switch {
	case err != nil:
		return resp.StatusCode, fmt.Errorf("reading the answer: %w", err)
	case len(b) > MaxAnswer:
		return resp.StatusCode, fmt.Errorf("the answer is longer than %d bytes", MaxAnswer)
	case r.into == nil:
		return resp.StatusCode, nil
	}
	if err := json.Unmarshal(b, r.into); err != nil {
		return resp.StatusCode, fmt.Errorf("decoding the answer: %w", err)
	}
	return resp.StatusCode, nil
}

// readProblem makes a Problem of any answer: proxies answer in HTML.
func readProblem(resp *http.Response) *Problem {
	p := &Problem{}
	b, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	if err != nil || json.Unmarshal(b, p) != nil || p.Code == "" {
		p = &Problem{Type: "about:blank", Title: http.StatusText(resp.StatusCode), Code: CodeUnknown,
			Detail: fmt.Sprintf("status %d without a problem document; what answered is no broker, or a proxy before it", resp.StatusCode)}
	}
	p.Status = resp.StatusCode
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
		p.RetryAfter = s
	}
	return p
}

func quoted(n int64) string { return `"` + strconv.FormatInt(n, 10) + `"` }
