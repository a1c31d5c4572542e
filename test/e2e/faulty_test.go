package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
)

// faulty stands in front of an admin API and makes creates go wrong on request.
type faulty struct {
	url string

	mu    sync.Mutex
	hold  chan struct{} // creates wait for it to be closed before they are passed on
	lose  bool          // creates are passed on and never answered
	holds int           // creates that have come to wait
}

func newFaulty(t *testing.T, target string) *faulty {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	f := &faulty{}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: u.Scheme, Host: u.Host})
	quiet := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if !bytes.Contains(body, []byte(`"request":"create"`)) {
			proxy.ServeHTTP(w, r)
			return
		}
		f.mu.Lock()
		hold, lose := f.hold, f.lose
		if hold != nil {
			f.holds++
		}
		f.mu.Unlock()
		if hold != nil {
			<-hold
		}
		// The request's own context may be over: what was sent takes effect all the same.
		out, _ := http.NewRequest(r.Method, target, bytes.NewReader(body))
		out.Header = r.Header.Clone()
		res, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer res.Body.Close()
		if lose {
			select {
			case <-r.Context().Done():
			case <-quiet:
			}
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(res.StatusCode)
		_, _ = io.Copy(w, res.Body)
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(func() { close(quiet) })
	t.Cleanup(func() { f.release() })
	f.url = srv.URL + u.Path
	return f
}

// stop makes creates wait.
func (f *faulty) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hold = make(chan struct{})
	f.holds = 0
}

// release passes on what waits, and all that comes.
func (f *faulty) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hold != nil {
		close(f.hold)
		f.hold = nil
	}
}

// held returns how many creates have come to wait since stop.
func (f *faulty) held() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.holds
}

// silence makes creates take effect without an answer.
func (f *faulty) silence(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lose = on
}
