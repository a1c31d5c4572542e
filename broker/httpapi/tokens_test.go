package httpapi_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roomscaler/roomscaler/broker/httpapi"
)

const tokensYAML = `
app-0123456789abcdef: application
inst-0123456789abcdef: {scope: instance, pool: video}
scal-0123456789abcdef: scaler
oper-0123456789abcdef: operator
metr-0123456789abcdef: metrics
other-0123456789abcdef: {scope: operator, pool: audio}
`

func withTokens(t *testing.T, f *fakePool) http.Handler {
	t.Helper()
	tokens, err := httpapi.ReadTokens(tokenFile(t, tokensYAML), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return handler(f, httpapi.Options{Tokens: tokens, Metrics: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})})
}

func TestTokens_EachScopeCoversItsCallsOnly(t *testing.T) {
	const in = "/v1/pools/video/instances/janus-0"
	calls := map[string]string{ // who may
		"PUT /v1/pools/video/rooms/r":    "app oper",
		"GET /v1/pools/video/rooms/r":    "app oper",
		"DELETE /v1/pools/video/rooms/r": "app oper",
		"GET /v1/pools/video/rooms":      "app oper",
		"GET /v1/pools/video/instances":  "scal oper",
		"GET " + in:                      "inst scal oper",
		"POST " + in + "/drain":          "inst scal oper",
		"GET " + in + "/drain":           "inst scal oper",
		"DELETE " + in + "/drain":        "inst scal oper",
		"POST " + in + "/lost":           "oper",
		"GET /v1/pools/video":            "scal oper",
		"PUT /v1/pools/video/plan":       "scal oper",
		"GET /metrics":                   "metr oper other", // not of a pool
		"GET /livez":                     "app inst scal oper metr other none wrong",
		"GET /readyz":                    "app inst scal oper metr other none wrong",
		"GET /openapi.json":              "app inst scal oper metr other none wrong",
	}
	for line, may := range calls {
		t.Run(line, func(t *testing.T) {
			f, _ := example()
			h := withTokens(t, f)
			for _, who := range []string{"app", "inst", "scal", "oper", "metr", "other", "wrong", "none"} {
				var headers []string
				if who != "none" {
					headers = append(headers, "Authorization: Bearer "+who+"-0123456789abcdef")
				}
				body := ""
				if strings.HasSuffix(line, "/plan") {
					body, headers = `{"term":"t"}`, append(headers, `If-Match: "0"`)
				}
				w := do(h, line, body, headers...)
				refused := w.Code == 401 || w.Code == 403
				if may := strings.Contains(" "+may+" ", " "+who+" "); may == refused || !refused && w.Code >= 400 {
					t.Errorf("%s: got %d: %s", who, w.Code, w.Body)
				}
				if (who == "none" || who == "wrong") && refused != (w.Header().Get("WWW-Authenticate") != "") {
					t.Errorf("%s: got %d with %v", who, w.Code, w.Header())
				}
			}
		})
	}
}

func TestTokens_TheScopeFixesTheOwnerOfAMark(t *testing.T) {
	cases := []struct {
		who, owner string
		status     int
		asked      string
	}{
		{"inst", "", 200, "hook"}, {"inst", "hook", 200, "hook"}, {"inst", "operator", 403, ""}, {"inst", "scaler", 403, ""}, {"inst", "broker", 400, ""},
		{"scal", "", 200, "scaler"}, {"scal", "scaler", 200, "scaler"}, {"scal", "hook", 403, ""},
		{"oper", "", 200, "operator"}, {"oper", "rollout", 200, "rollout"}, {"oper", "broker", 400, ""},
	}
	for _, tc := range cases {
		t.Run(fmt.Sprintf("%s names %q", tc.who, tc.owner), func(t *testing.T) {
			auth := "Authorization: Bearer " + tc.who + "-0123456789abcdef"
			f, _ := example()
			h := withTokens(t, f)
			if w := do(h, "POST /v1/pools/video/instances/janus-0/drain", `{"owner":"`+tc.owner+`"}`, auth); w.Code != tc.status {
				t.Errorf("drain: got %d: %s", w.Code, w.Body)
			}
			if w := do(h, "DELETE /v1/pools/video/instances/janus-0/drain?owner="+tc.owner, "", auth); w.Code != tc.status {
				t.Errorf("uncordon: got %d: %s", w.Code, w.Body)
			}
			var want []string
			if tc.asked != "" {
				want = []string{`drain "janus-0" ` + tc.asked + ` "" 0s`, `uncordon "janus-0" ` + tc.asked, `instance "janus-0"`}
			}
			if diff := cmp.Diff(want, f.asked); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	t.Run("an operator may not set another owner's mark, but take it away", func(t *testing.T) {
		for _, owner := range []string{"hook", "scaler"} {
			f, _ := example()
			h, auth := withTokens(t, f), "Authorization: Bearer oper-0123456789abcdef"
			if w := do(h, "POST /v1/pools/video/instances/janus-0/drain", `{"owner":"`+owner+`"}`, auth); w.Code != 403 {
				t.Errorf("%s: drain: got %d: %s", owner, w.Code, w.Body)
			}
			if w := do(h, "DELETE /v1/pools/video/instances/janus-0/drain?owner="+owner, "", auth); w.Code != 200 || f.asked[0] != `uncordon "janus-0" `+owner {
				t.Errorf("%s: uncordon: got %d, asked %v: %s", owner, w.Code, f.asked, w.Body)
			}
		}
	})
	t.Run("an operator may read of any owner's drain", func(t *testing.T) {
		f, _ := example()
		for _, owner := range []string{"hook", "scaler", "broker", "operator"} {
			w := do(withTokens(t, f), "GET /v1/pools/video/instances/janus-0/drain?owner="+owner, "", "Authorization: Bearer oper-0123456789abcdef")
			if w.Code != 200 {
				t.Errorf("%s: got %d: %s", owner, w.Code, w.Body)
			}
		}
	})
}

func TestTokens_AreReadAgainWhenTheFileChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := tokenFile(t, "first-0123456789abcdef: operator\n")
		var log bytes.Buffer
		tokens, err := httpapi.ReadTokens(path, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		f, _ := example()
		h := handler(f, httpapi.Options{Tokens: tokens})
		status := func(token string) int {
			return do(h, "GET /v1/pools/video", "", "Authorization: Bearer "+token+"-0123456789abcdef").Code
		}
		write := func(content string) {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
		}
		if status("first") != 200 || status("second") != 401 {
			t.Error("at first")
		}
		write("second-0123456789abcdef: operator\n")
		if status("first") != 401 || status("second") != 200 {
			t.Error("after the change")
		}
		for range 3 {
			write("third-0123456789abcdef: [\n")
			if status("second") != 200 {
				t.Error("a file that cannot be read took the tokens away")
			}
		}
		if n := strings.Count(log.String(), "\n"); n != 1 || strings.Contains(log.String(), "third") {
			t.Errorf("logged %d lines: %s", n, log.String())
		}
		write("third-0123456789abcdef: operator\n")
		if status("second") != 401 || status("third") != 200 {
			t.Error("after it was mended")
		}
	})
}

func TestReadTokens_RefusesABadFile(t *testing.T) {
	for content, want := range map[string]string{
		"":                                  "no token",
		"- a":                               "no token",
		"{":                                 "no YAML",
		"short: application":                "line 1: a token needs at least 16 bytes",
		"with a space 0123456789: operator": "no space",
		"tok-0123456789abcdef: admin":       "line 1: no such scope; there are application",
		"\ntok-0123456789abcdef: {scop: x}": "line 2: give a scope",
		"tok-0123456789abcdef: {scope: scaler, pool: A/B}":               "pool is no name",
		"tok-0123456789abcdef: scaler\ntok-0123456789abcdef: operator\n": "line 2: a token is there twice",
	} {
		_, err := httpapi.ReadTokens(tokenFile(t, content), slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "tok-0") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v", content, err)
		}
	}
	if _, err := httpapi.ReadTokens("/nonexistent/file", slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a file that is not there is no error")
	}
}

func TestHandler_WithoutTokensRefusesWebPagesOfOtherOrigins(t *testing.T) {
	f, _ := example()
	w := do(handler(f, httpapi.Options{}), "POST /v1/pools/video/instances/janus-0/lost", "", "Sec-Fetch-Site: cross-site", "Origin: https://evil.example")
	if w.Code != 403 || len(f.asked) != 0 {
		t.Errorf("got %d: %s", w.Code, w.Body)
	}
}

func TestHandler_LocalHosts(t *testing.T) {
	for host, want := range map[string]int{"127.0.0.1:8080": 200, "localhost": 200, "[::1]:8080": 200, "::1": 200, "evil.example:8080": 403, "10.0.0.1": 403, "": 403} {
		f, _ := example()
		r := httptest.NewRequest("GET", "/v1/pools/video", nil)
		r.Host = host
		w := httptest.NewRecorder()
		handler(f, httpapi.Options{LocalHosts: true}).ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%q: got %d: %s", host, w.Code, w.Body)
		}
	}
}
