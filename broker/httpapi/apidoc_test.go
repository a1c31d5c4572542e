package httpapi

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What docs/api.md says of calls, scopes and codes is what the handler does.
func TestDocs_api(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{} // cells by the text of the first
	for line := range strings.SplitSeq(string(b), "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if strings.HasPrefix(line, "| `") && len(cells) > 2 {
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows[strings.Trim(cells[0], "`")] = cells[1:]
		}
	}
	t.Run("each call is there with its scopes, and its parameters in what is said of it", func(t *testing.T) {
		for _, rt := range routes(http.NotFoundHandler()) {
			key := rt.method + " " + rt.pattern
			row, ok := rows[key]
			if !ok {
				t.Errorf("%s is missing", key)
				continue
			}
			who := []string{}
			for _, s := range rt.scopes {
				who = append(who, string(s))
			}
			if want := strings.Join(who, ", "); rt.scopes == nil && row[0] != "anybody" || rt.scopes != nil && row[0] != want {
				t.Errorf("%s: %q may call, want %q", key, row[0], want)
			}
			for _, p := range rt.query {
				if !strings.Contains(string(b), "?"+p+"=") {
					t.Errorf("%s: parameter %s is missing", key, p)
				}
			}
		}
	})
	t.Run("each code is there with its status and Retry-After", func(t *testing.T) {
		want := map[string][]string{} // status, then every Retry-After
		for _, p := range problems {
			retry := ""
			if p.retry > 0 {
				retry = fmt.Sprint(p.retry)
			}
			if want[p.code] == nil {
				want[p.code] = []string{fmt.Sprint(p.status)}
			}
			if !slices.Contains(want[p.code][1:], retry) {
				want[p.code] = append(want[p.code], retry)
			}
		}
		for code, w := range want {
			slices.Sort(w[1:])
			row, ok := rows[code]
			if !ok || row[0] != w[0] || row[1] != strings.Join(w[1:], " or ") {
				t.Errorf("%s: the table says %q, want %q", code, row, w)
			}
		}
	})
	t.Run("each code of brokerapi is there", func(t *testing.T) {
		for _, code := range codes(t) {
			if !strings.Contains(string(b), "`"+code+"`") {
				t.Errorf("%s is missing", code)
			}
		}
	})
}

// codes are the values of brokerapi's constants of codes, by its source.
func codes(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "brokerapi", "types.go"))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for line := range strings.SplitSeq(string(b), "\n") {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "= \"")
		if ok && strings.HasPrefix(name, "Code") {
			list = append(list, value[:strings.Index(value, `"`)])
		}
	}
	if len(list) < 20 {
		t.Fatalf("found only %d codes", len(list))
	}
	return list
}
