package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/broker/httpapi"
)

func TestHandler_RefusesBadInput(t *testing.T) {
	const room, in = "/v1/pools/video/rooms/r", "/v1/pools/video/instances/janus-0"
	cases := map[string]struct {
		line, body, header string
		status             int
		code, field        string
		detail             string // part of it: the remedy
	}{
		"no such path":                {"GET /v1/rooms", "", "", 404, "not_found", "", "/openapi.json"},
		"a path with an end too many": {"GET /livez/", "", "", 404, "not_found", "", "/openapi.json"},
		"the root":                    {"GET /", "", "", 404, "not_found", "", "/openapi.json"},
		"no such method":              {"PATCH " + room, "", "", 405, "method_not_allowed", "", "use PUT, GET, DELETE"},
		"no such pool":                {"GET /v1/pools/audio", "", "", 404, "pool_not_found", "", "pools"},
		"an empty room name":          {"PUT /v1/pools/video/rooms/", "", "", 400, "invalid", "room", "1-256 bytes"},
		"a long room name":            {"PUT /v1/pools/video/rooms/" + strings.Repeat("x", 257), "", "", 400, "invalid", "room", "at most 256"},
		"a room name of no UTF-8":     {"PUT /v1/pools/video/rooms/%FF", "", "", 400, "invalid", "room", "UTF-8"},
		"a control character":         {"PUT /v1/pools/video/rooms/a%00", "", "", 400, "invalid", "room", "control character"},
		"an unescaped slash":          {"PUT /v1/pools/video/rooms/a/b", "", "", 404, "not_found", "", ""},
		"a bad instance name":         {"GET /v1/pools/video/instances/JANUS", "", "", 400, "invalid", "instance", "DNS name"},
		"an unknown parameter":        {"GET " + room + "?wait=3s", "", "", 400, "invalid", "wait", "this call takes touch"},
		"a parameter where none is":   {"GET /v1/pools/video?x=1", "", "", 400, "invalid", "x", "no parameter"},
		"a parameter twice":           {"GET " + room + "?touch=true&touch=false", "", "", 400, "invalid", "touch", "once"},
		"a malformed query":           {"GET " + room + "?%zz", "", "", 400, "invalid", "query", "percent-encode"},
		"touch":                       {"GET " + room + "?touch=1", "", "", 400, "invalid", "touch", "true or false"},
		"limit zero":                  {"GET /v1/pools/video/rooms?limit=0", "", "", 400, "invalid", "limit", "1 to 1000"},
		"limit too high":              {"GET /v1/pools/video/rooms?limit=1001", "", "", 400, "invalid", "limit", "1 to 1000"},
		"a cursor of another making":  {"GET /v1/pools/video/rooms?cursor=%21", "", "", 400, "invalid", "cursor", "page before"},
		"instance of a list":          {"GET /v1/pools/video/rooms?instance=X", "", "", 400, "invalid", "instance", "DNS name"},
		"wait":                        {"GET " + in + "/drain?owner=hook&wait=soon", "", "", 400, "invalid", "wait", "30s"},
		"wait of a create":            {"PUT " + room + "?wait=soon", "", "", 400, "invalid", "wait", "30s"},
		"a negative wait":             {"GET " + in + "/drain?owner=hook&wait=-3s", "", "", 400, "invalid", "wait", "30s"},
		"no owner":                    {"GET " + in + "/drain", "", "", 400, "invalid", "owner", "give scaler, hook"},
		"an unknown owner":            {"DELETE " + in + "/drain?owner=me", "", "", 400, "invalid", "owner", "there are scaler, hook"},
		"the broker's own mark":       {"DELETE " + in + "/drain?owner=broker", "", "", 400, "invalid", "owner", "there are scaler, hook"},
		"grace":                       {"POST " + in + "/drain", `{"owner":"hook","grace":"1"}`, "", 400, "invalid", "grace", "1h30m"},
		"a grace of nothing":          {"POST " + in + "/drain", `{"owner":"hook","grace":"0s"}`, "", 400, "invalid", "grace", "no deadline"},
		"reason":                      {"POST " + in + "/drain", `{"owner":"hook","reason":"a\u0007"}`, "", 400, "invalid", "reason", "control"},
		"a body that is no JSON":      {"PUT " + room, "room=1", "", 400, "invalid", "body", "JSON"},
		"a body that is no object":    {"PUT " + room, "[1]", "", 400, "invalid", "body", "an object"},
		"two objects":                 {"PUT " + room, "{} {}", "", 400, "invalid", "body", "one object"},
		"an unknown field":            {"PUT " + room, `{"participants":3}`, "", 400, "invalid", "participants", "expected_participants, janus, labels"},
		"a nested unknown field":      {"PUT /v1/pools/video/plan", `{"term":"t","seal":[{"name":"x"}]}`, `If-Match: "0"`, 400, "invalid", "name", "seal[].instance"},
		"a field of another kind":     {"PUT " + room, `{"expected_participants":"3"}`, "", 400, "invalid", "expected_participants", "whole number"},
		"a fraction":                  {"PUT " + room, `{"expected_participants":1.5}`, "", 400, "invalid", "expected_participants", "whole number"},
		"a negative number":           {"PUT " + room, `{"expected_participants":-1}`, "", 400, "invalid", "expected_participants", "from 1"},
		"a label that is no string":   {"PUT " + room, `{"labels":{"a":1}}`, "", 400, "invalid", "labels", "a string"},
		"a label without a name":      {"PUT " + room, `{"labels":{"":"x"}}`, "", 400, "invalid", "labels", "name"},
		"labels that are too large":   {"PUT " + room, `{"labels":{"a":"` + strings.Repeat("x", 4096) + `"}}`, "", 400, "invalid", "labels", "at most 4096"},
		"a body that is too large":    {"PUT " + room, `{"labels":{"a":"` + strings.Repeat("x", 64<<10) + `"}}`, "", 413, "too_large", "body", "65536 bytes"},
		"a body where none is taken":  {"DELETE " + room, `{}`, "", 400, "invalid", "body", "leave it out"},
		"If-Match of a room":          {"DELETE " + room, "", `If-Match: *`, 400, "invalid", "If-Match", `"7"`},
		"If-Match zero of a room":     {"DELETE " + room, "", `If-Match: "0"`, 400, "invalid", "If-Match", "leave the header out"},
		"a plan without If-Match":     {"PUT /v1/pools/video/plan", `{"term":"t"}`, "", 400, "invalid", "If-Match", `"0" for none`},
		"a plan with a weak If-Match": {"PUT /v1/pools/video/plan", `{"term":"t"}`, `If-Match: W/"1"`, 400, "invalid", "If-Match", `"7"`},
		"a plan without a body":       {"PUT /v1/pools/video/plan", "", `If-Match: "0"`, 400, "invalid", "term", "term of the facts"},
		"a negative desired":          {"PUT /v1/pools/video/plan", `{"term":"t","desired":-1}`, `If-Match: "0"`, 400, "invalid", "desired", "from 0"},
		"a negative target":           {"PUT /v1/pools/video/plan", `{"term":"t","target":-1}`, `If-Match: "0"`, 400, "invalid", "target", "from 0"},
		"empty_when":                  {"PUT /v1/pools/video/plan", `{"term":"t","empty_when":"x"}`, `If-Match: "0"`, 400, "invalid", "empty_when", "sessions or rooms"},
		"guard":                       {"PUT /v1/pools/video/plan", `{"term":"t","guard_ms":99999999}`, `If-Match: "0"`, 400, "invalid", "guard_ms", "3600000"},
		"a seal without a name":       {"PUT /v1/pools/video/plan", `{"term":"t","seal":[{}]}`, `If-Match: "0"`, 400, "invalid", "seal[].instance", "name"},
		"an unseal of no name":        {"PUT /v1/pools/video/plan", `{"term":"t","unseal":[""]}`, `If-Match: "0"`, 400, "invalid", "unseal[]", "name"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, _ := example()
			var headers []string
			if tc.header != "" {
				headers = []string{tc.header}
			}
			w := do(handler(f, httpapi.Options{}), tc.line, tc.body, headers...)
			var p brokerapi.Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
				t.Fatal(err)
			}
			if w.Code != tc.status || p.Code != tc.code || p.Field != tc.field || !strings.Contains(p.Detail, tc.detail) || strings.Contains(p.Detail, "\n") {
				t.Errorf("got %d: %s", w.Code, w.Body)
			}
			if len(f.asked) != 0 {
				t.Errorf("the pool was asked %q", f.asked)
			}
			if w.Code == 405 && w.Header().Get("Allow") != "PUT, GET, DELETE" {
				t.Errorf("Allow: %q", w.Header().Get("Allow"))
			}
		})
	}
}

func FuzzHandler(f *testing.F) {
	f.Add("PUT", "/v1/pools/video/rooms/a%2Fb?x=1", `{"expected_participants":3,"labels":{"a":"b"}}`, `"1"`, "Bearer x")
	f.Add("PUT", "/v1/pools/video/plan", `{"term":"t","desired":1,"seal":[{"instance":"janus-0"}]}`, `"0"`, "")
	f.Add("GET", "/v1/pools/video/instances/janus-0/drain?owner=hook&wait=1ns", "", "", "")
	f.Add("POST", "/v1/pools/video/instances/janus-0/drain", `{"owner":"operator","grace":"1h"}`, "", "")
	f.Add("DELETE", "/v1/pools/video/rooms/%2e%2e", "", "*", "")
	f.Add("GET", "/v1/pools/video/rooms?limit=1&cursor=YQ", "", "", "")
	f.Fuzz(func(t *testing.T, method, target, body, ifMatch, auth string) {
		r, err := http.NewRequest(method, "http://h"+target, strings.NewReader(body))
		if err != nil || !strings.HasPrefix(target, "/") {
			return
		}
		r.Header.Set("If-Match", ifMatch)
		r.Header.Set("Authorization", auth)
		pool, _ := example()
		w := httptest.NewRecorder()
		handler(pool, httpapi.Options{}).ServeHTTP(w, r)
		switch {
		case w.Code >= 500:
			t.Fatalf("%d: %s", w.Code, w.Body)
		case w.Code == 204:
		case !json.Valid(w.Body.Bytes()) || !utf8.Valid(w.Body.Bytes()):
			t.Fatalf("%d with %q", w.Code, w.Body)
		case w.Code >= 400:
			var p brokerapi.Problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Status != w.Code || p.Code == "" || p.Title == "" {
				t.Fatalf("%d with %s (%v)", w.Code, w.Body, err)
			}
		}
		if w.Code >= 400 && len(pool.asked) > 0 && !strings.HasPrefix(pool.asked[0], "instance") && !strings.HasPrefix(pool.asked[0], "uncordon") {
			t.Fatalf("refused with %s, but the pool was asked %s", w.Body, fmt.Sprint(pool.asked))
		}
	})
}
