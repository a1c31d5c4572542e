package brokerapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

// asked is what a server saw of a request.
type asked struct{ Method, URI, Auth, IfMatch, Type, Body string }

func server(t *testing.T, status int, header map[string]string, body string) (*httptest.Server, *[]asked) {
	t.Helper()
	var seen []asked
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		seen = append(seen, asked{r.Method, r.RequestURI, r.Header.Get("Authorization"), r.Header.Get("If-Match"), r.Header.Get("Content-Type"), string(b)})
		for k, v := range header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s, &seen
}

func client(t *testing.T, base string, token string) *brokerapi.Client {
	t.Helper()
	c, err := brokerapi.NewClient(base, func() (string, error) { return token, nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestClient_Requests(t *testing.T) {
	ctx := t.Context()
	cases := map[string]struct {
		call func(c *brokerapi.Client) error
		want asked
	}{
		"create": {func(c *brokerapi.Client) error {
			_, _, err := c.CreateRoom(ctx, "video", "a/b c", brokerapi.CreateRoom{ExpectedParticipants: 3})
			return err
		}, asked{"PUT", "/v1/pools/video/rooms/a%2Fb%20c", "Bearer s3", "", "application/json", `{"expected_participants":3}`}},
		"a room named ..": {func(c *brokerapi.Client) error { _, err := c.Lookup(ctx, "video", "..", true); return err },
			asked{"GET", "/v1/pools/video/rooms/%2E%2E", "Bearer s3", "", "", ""}},
		"lookup without touch": {func(c *brokerapi.Client) error { _, err := c.Lookup(ctx, "video", "r", false); return err },
			asked{"GET", "/v1/pools/video/rooms/r?touch=false", "Bearer s3", "", "", ""}},
		"delete of an epoch": {func(c *brokerapi.Client) error { return c.DeleteRoom(ctx, "video", "r", 9) },
			asked{"DELETE", "/v1/pools/video/rooms/r", "Bearer s3", `"9"`, "", ""}},
		"rooms": {func(c *brokerapi.Client) error {
			_, err := c.Rooms(ctx, "video", brokerapi.RoomsQuery{Instance: "janus-0", Cursor: "x+y", Limit: 5})
			return err
		}, asked{"GET", "/v1/pools/video/rooms?cursor=x%2By&instance=janus-0&limit=5", "Bearer s3", "", "", ""}},
		"facts": {func(c *brokerapi.Client) error { _, err := c.Facts(ctx, "video"); return err },
			asked{"GET", "/v1/pools/video", "Bearer s3", "", "", ""}},
		"first plan": {func(c *brokerapi.Client) error {
			_, err := c.PutPlan(ctx, "video", 0, brokerapi.PutPlan{Term: "t", Desired: 2})
			return err
		}, asked{"PUT", "/v1/pools/video/plan", "Bearer s3", `"0"`, "application/json", `{"term":"t","desired":2}`}},
		"instances": {func(c *brokerapi.Client) error { _, err := c.Instances(ctx, "video"); return err },
			asked{"GET", "/v1/pools/video/instances", "Bearer s3", "", "", ""}},
		"instance": {func(c *brokerapi.Client) error { _, err := c.Instance(ctx, "video", "janus-0"); return err },
			asked{"GET", "/v1/pools/video/instances/janus-0", "Bearer s3", "", "", ""}},
		"drain": {func(c *brokerapi.Client) error {
			_, err := c.Drain(ctx, "video", "janus-0", brokerapi.DrainRequest{Owner: "hook", Grace: "1h"})
			return err
		}, asked{"POST", "/v1/pools/video/instances/janus-0/drain", "Bearer s3", "", "application/json", `{"owner":"hook","grace":"1h"}`}},
		"drain status": {func(c *brokerapi.Client) error {
			_, err := c.DrainStatus(ctx, "video", "janus-0", "hook", 30*time.Second)
			return err
		}, asked{"GET", "/v1/pools/video/instances/janus-0/drain?owner=hook&wait=30s", "Bearer s3", "", "", ""}},
		"uncordon": {func(c *brokerapi.Client) error { return c.Uncordon(ctx, "video", "janus-0", "scaler") },
			asked{"DELETE", "/v1/pools/video/instances/janus-0/drain?owner=scaler", "Bearer s3", "", "", ""}},
		"lost": {func(c *brokerapi.Client) error {
			_, err := c.Lost(ctx, "video", "janus-0", brokerapi.LostRequest{})
			return err
		}, asked{"POST", "/v1/pools/video/instances/janus-0/lost", "Bearer s3", "", "application/json", `{}`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, seen := server(t, 200, nil, "{}")
			if err := tc.call(client(t, s.URL+"/", "s3")); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]asked{tc.want}, *seen); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestClient_Answers(t *testing.T) {
	t.Run("201 is a fresh room and 200 one that was there", func(t *testing.T) {
		for status, want := range map[int]bool{201: true, 200: false} {
			s, _ := server(t, status, nil, `{"room":"r","epoch":5,"new_field":1}`)
			pin, fresh, err := client(t, s.URL, "").CreateRoom(t.Context(), "p", "r", brokerapi.CreateRoom{})
			if err != nil || fresh != want || pin.Epoch != 5 {
				t.Errorf("%d: got %v, %v, %v", status, pin, fresh, err)
			}
		}
	})
	t.Run("a problem document is a *Problem with Retry-After", func(t *testing.T) {
		s, _ := server(t, 503, map[string]string{"Retry-After": "5"}, `{"code":"no_capacity","title":"full","status":503}`)
		_, _, err := client(t, s.URL, "").CreateRoom(t.Context(), "p", "r", brokerapi.CreateRoom{})
		var p *brokerapi.Problem
		if !errors.As(err, &p) || p.Code != brokerapi.CodeNoCapacity || p.RetryAfter != 5 || p.Status != 503 {
			t.Errorf("got %#v", err)
		}
	})
	t.Run("an error page of a proxy is a *Problem with code unknown", func(t *testing.T) {
		for _, body := range []string{"<html>bad gateway</html>", "", `{"error":"x"}`, strings.Repeat("x", 5<<20)} {
			s, _ := server(t, 502, nil, body)
			_, err := client(t, s.URL, "").Facts(t.Context(), "p")
			var p *brokerapi.Problem
			if !errors.As(err, &p) || p.Code != brokerapi.CodeUnknown || p.Status != 502 {
				t.Errorf("got %#v", err)
			}
		}
	})
	t.Run("a redirect is not followed, so the token goes nowhere else", func(t *testing.T) {
		other, seen := server(t, 200, nil, "{}")
		s, _ := server(t, 301, map[string]string{"Location": other.URL}, "")
		_, err := client(t, s.URL, "s3").Facts(t.Context(), "p")
		var p *brokerapi.Problem
		if !errors.As(err, &p) || p.Status != 301 || len(*seen) != 0 {
			t.Errorf("got %v; the other server was asked %d times", err, len(*seen))
		}
	})
	t.Run("an answer that is no JSON is an error that is no *Problem", func(t *testing.T) {
		s, _ := server(t, 200, nil, "<html>")
		_, err := client(t, s.URL, "").Facts(t.Context(), "p")
		var p *brokerapi.Problem
		if err == nil || errors.As(err, &p) {
			t.Errorf("got %#v", err)
		}
	})
	t.Run("an endless answer is cut off", func(t *testing.T) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			chunk := []byte(strings.Repeat(" ", 1<<20))
			for range brokerapi.MaxAnswer>>20 + 8 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}))
		defer s.Close()
		_, err := client(t, s.URL, "").Facts(t.Context(), "p")
		if err == nil || !strings.Contains(err.Error(), "longer than") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the context ends a call", func(t *testing.T) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		defer s.Close()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := client(t, s.URL, "").Facts(ctx, "p")
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a token that cannot be read is an error before anything is sent", func(t *testing.T) {
		s, seen := server(t, 200, nil, "{}")
		c, err := brokerapi.NewClient(s.URL, func() (string, error) { return "", errors.New("no such file") }, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Facts(t.Context(), "p"); err == nil || len(*seen) != 0 {
			t.Errorf("got %v, %d requests", err, len(*seen))
		}
	})
}

func TestNewClient_RefusesABadURL(t *testing.T) {
	for _, base := range []string{"", "127.0.0.1:8080", "ftp://x", "http://", "http://user:pw@x", "http://x?y", "http://x#y", "http://%zz"} {
		if _, err := brokerapi.NewClient(base, nil, nil); err == nil || strings.Contains(err.Error(), "pw") {
			t.Errorf("%q: got %v", base, err)
		}
	}
}
