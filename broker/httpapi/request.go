package httpapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/roomscaler/roomscaler/broker"
)

// maxWait is the longest that a request is held.
const maxWait = time.Minute

// query is a request's parameters, read and checked. A parameter that was not
// given has its default.
type query struct {
	touch    bool
	instance string
	limit    int
	after    string // the name in the cursor
	owner    string
	wait     time.Duration
}

func readQuery(r *http.Request, takes []string) (query, error) {
	q := query{touch: true, limit: 100}
	if r.URL.RawQuery == "" {
		return q, nil
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return q, invalid("query", "is malformed; percent-encode it")
	}
	for name, v := range values {
		switch {
		case !slices.Contains(takes, name):
			want := "this call takes no parameter"
			if len(takes) > 0 {
				want = "no such parameter; this call takes " + strings.Join(takes, ", ")
			}
			return q, invalid(clip(name), want)
		case len(v) > 1:
			return q, invalid(name, "was given more than once; give it once")
		}
		if err := q.set(name, v[0]); err != nil {
			return q, err
		}
	}
	return q, nil
}

func (q *query) set(name, v string) (err error) {
	switch name {
	case "touch":
		if v != "true" && v != "false" {
			return invalid(name, "give true or false")
		}
		q.touch = v == "true"
	case "instance":
		q.instance = v
		return broker.CheckInstance(v)
	case "limit":
		if q.limit, err = strconv.Atoi(v); err != nil || q.limit < 1 || q.limit > 1000 {
			return invalid(name, "give a number from 1 to 1000")
		}
	case "cursor":
		b, err := base64.RawURLEncoding.DecodeString(v)
		if err != nil || broker.CheckRoom(string(b)) != nil {
			return invalid(name, "give the cursor of the page before, or none for the first page")
		}
		q.after = string(b)
	case "owner":
		q.owner = v
	case "wait":
		if q.wait, err = time.ParseDuration(v); err != nil || q.wait < 0 {
			return invalid(name, "give a duration such as 30s; at most 60s are held")
		}
		q.wait = min(q.wait, maxWait)
	}
	return nil
}

func cursorOf(room string) string { return base64.RawURLEncoding.EncodeToString([]byte(room)) }

func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if limit == 0 {
		if r.ContentLength > 0 {
			return nil, invalid("body", "this call takes none; leave it out")
		}
		return nil, nil
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, &sizeError{limit: tooLarge.Limit}
	}
	if err != nil {
		return nil, invalid("body", "could not be read to its end; send it again")
	}
	return b, nil
}

// decode reads the body into the struct that v points at. No body is the zero value.
func decode(body []byte, v any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	if err == nil {
		if _, err := dec.Token(); err != io.EOF {
			return invalid("body", "has something after its JSON object; send one object")
		}
		return nil
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		field := wrong.Field
		if field == "" {
			field = "body"
		}
		return invalid(field, "is "+wrong.Value+"; give "+jsonKind(wrong.Type))
	}
	// The standard library has no type for this error.
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		if s, err := strconv.Unquote(name); err == nil {
			name = s
		}
		return invalid(clip(name), "no such field; there are "+strings.Join(fieldsOf(reflect.TypeOf(v).Elem()), ", "))
	}
	return invalid("body", "is no JSON object")
}

// fieldsOf lists the JSON names of a struct's fields; those of a list's elements as list[].name.
func fieldsOf(t reflect.Type) []string {
	var names []string
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		names = append(names, name)
		if f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct {
			for _, sub := range fieldsOf(f.Type.Elem()) {
				names = append(names, name+"[]."+sub)
			}
		}
	}
	return names
}

func jsonKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return "a string"
}

// ifMatch reads the If-Match header as a number; ok is false when there is none.
func ifMatch(h http.Header) (n int64, ok bool, err error) {
	v := h.Get("If-Match")
	if v == "" {
		return 0, false, nil
	}
	n, err = strconv.ParseInt(strings.Trim(v, `"`), 10, 64)
	if err != nil || n < 0 {
		return 0, true, invalid("If-Match", `give a number in quotes, such as "7"`)
	}
	return n, true, nil
}

func invalid(field, want string) error { return &broker.InvalidError{Field: field, Want: want} }

func clip(s string) string {
	if len(s) > 60 {
		return fmt.Sprintf("%.60s…", strings.ToValidUTF8(s, "?"))
	}
	return strings.ToValidUTF8(s, "?")
}
