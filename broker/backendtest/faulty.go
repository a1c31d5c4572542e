package backendtest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
)

// Deed is what happens to a request or to its answer.
type Deed int

// The deeds.
const (
	Hang    Deed = iota // nothing comes, until the trouble is stopped or the caller gives up
	Break               // the connection ends without an answer
	Fail                // a bare 500
	Garbage             // a 200 that means nothing
)

// Trouble says which requests meet which fault.
type Trouble struct {
	Match func(path string, body []byte) bool // nil = all
	Times int                                 // how many requests; 0 = all until it is stopped
	After bool                                // the server has done as asked before; else it never hears of it
	Do    Deed
}

// Faulty is an HTTP server that passes everything on to a real one, but for the troubles it was told to
// cause. All methods are safe for concurrent use.
type Faulty struct {
	server *httptest.Server
	target *url.URL

	mu       sync.Mutex
	troubles []*Caused
	seen     []Request
}

// Request is a request that came through.
type Request struct {
	Path string
	Body []byte
}

// Caused is a trouble at work.
type Caused struct {
	Trouble
	from *Faulty
	left int
	hit  chan struct{}
	over chan struct{}
}

// NewFaulty starts one in front of the server at address, for as long as the test runs.
func NewFaulty(tb testing.TB, address string) *Faulty {
	tb.Helper()
	target, err := url.Parse(address)
	if err != nil {
		tb.Fatalf("address %q: %v", address, err)
	}
	f := &Faulty{target: target}
	f.server = httptest.NewServer(f)
	tb.Cleanup(f.Close)
	return f
}

// Close makes it listen no more. It may be called again.
func (f *Faulty) Close() {
	f.StopAll()
	f.server.CloseClientConnections()
	f.server.Close()
}

// Address returns where the server seems to be.
func (f *Faulty) Address() string { return f.server.URL + f.target.Path }

// Cause begins a trouble. Of several that match a request the first begun strikes.
func (f *Faulty) Cause(t Trouble) *Caused {
	c := &Caused{Trouble: t, from: f, left: t.Times, hit: make(chan struct{}, 1), over: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.troubles = append(f.troubles, c)
	return c
}

// Hit is sent to when the trouble strikes; with After, when the server has done as asked.
func (c *Caused) Hit() <-chan struct{} { return c.hit }

// Stop ends the trouble. Requests that hang go on: to the server, or with its answer.
func (c *Caused) Stop() {
	c.from.mu.Lock()
	defer c.from.mu.Unlock()
	c.stop()
}

func (c *Caused) stop() {
	select {
	case <-c.over:
	default:
		close(c.over)
	}
}

// StopAll ends all troubles.
func (f *Faulty) StopAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.troubles {
		c.stop()
	}
	f.troubles = nil
}

// Requests returns all requests that came, in order, those that met a trouble included.
func (f *Faulty) Requests() []Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Request(nil), f.seen...)
}

func (f *Faulty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	trouble := f.meet(r.URL.Path, body)
	if trouble == nil {
		f.forward(r.Context(), r, body)(w)
		return
	}
	var answer func(http.ResponseWriter)
	if trouble.After {
		answer = f.forward(context.WithoutCancel(r.Context()), r, body)
	}
	select {
	case trouble.hit <- struct{}{}:
	default:
	}
	switch trouble.Do {
	case Break:
		panic(http.ErrAbortHandler)
	case Fail:
		w.WriteHeader(http.StatusInternalServerError)
		return
	case Garbage:
		io.WriteString(w, "<html>It works!</html>")
		return
	}
	select {
	case <-r.Context().Done():
		panic(http.ErrAbortHandler)
	case <-trouble.over:
	}
	if answer == nil {
		answer = f.forward(r.Context(), r, body)
	}
	answer(w)
}

// meet notes the request and returns the trouble that strikes it.
func (f *Faulty) meet(path string, body []byte) *Caused {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, Request{Path: path, Body: body})
	for _, c := range f.troubles {
		select {
		case <-c.over:
			continue
		default:
		}
		if c.Match != nil && !c.Match(path, body) || c.Times > 0 && c.left == 0 {
			continue
		}
		c.left--
		return c
	}
	return nil
}

// forward asks the real server and returns a function that gives its answer.
func (f *Faulty) forward(ctx context.Context, r *http.Request, body []byte) func(http.ResponseWriter) {
	broken := func(http.ResponseWriter) { panic(http.ErrAbortHandler) }
	to := *f.target
	to.Path, to.RawQuery = r.URL.Path, r.URL.RawQuery
	req, err := http.NewRequestWithContext(ctx, r.Method, to.String(), bytes.NewReader(body))
	if err != nil {
		return broken
	}
	req.Header = r.Header.Clone()
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return broken
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return broken
	}
	return func(w http.ResponseWriter) {
		w.WriteHeader(resp.StatusCode)
		w.Write(answer)
	}
}
