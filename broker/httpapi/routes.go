package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

// route is one call of the API. Each is in openapi.json too.
type route struct {
	method, pattern string
	scopes          []Scope  // who may call besides operators; nil: everybody, without a token
	query           []string // the parameters it takes
	maxBody         int64    // bytes; 0: it takes no body
	handle          func(context.Context, *Handler, *call) (answer, error)
	raw             http.Handler // instead of handle
}

// call is one request, checked as far as that goes without knowing what it asks.
type call struct {
	served   Served
	who      principal
	names    map[string]string // of the path, decoded
	query    query
	header   http.Header
	body     []byte
	stopping <-chan struct{}
}

func (c *call) pool() Pool { return c.served.Pool }

const (
	maxBody = 64 << 10
	// A plan's body carries the scaler's history and what it released: some 100 bytes an instance.
	maxPlan = 4 << 20
)

func routes(metrics http.Handler) []route {
	rooms := []Scope{ScopeApplication}
	marks := []Scope{ScopeInstance, ScopeScaler}
	scaler := []Scope{ScopeScaler}
	operator := []Scope{ScopeOperator}
	list := []route{
		{method: "PUT", pattern: brokerapi.PathRoom, scopes: rooms, query: []string{"wait"}, maxBody: maxBody, handle: createRoom},
		{method: "GET", pattern: brokerapi.PathRoom, scopes: rooms, query: []string{"touch"}, handle: lookupRoom},
		{method: "DELETE", pattern: brokerapi.PathRoom, scopes: rooms, handle: deleteRoom},
		{method: "GET", pattern: brokerapi.PathRooms, scopes: rooms, query: []string{"instance", "limit", "cursor"}, handle: listRooms},
		{method: "GET", pattern: brokerapi.PathInstances, scopes: scaler, handle: listInstances},
		{method: "GET", pattern: brokerapi.PathInstance, scopes: marks, handle: getInstance},
		{method: "POST", pattern: brokerapi.PathDrain, scopes: marks, maxBody: maxBody, handle: drain},
		{method: "GET", pattern: brokerapi.PathDrain, scopes: marks, query: []string{"owner", "wait"}, handle: drainStatus},
		{method: "DELETE", pattern: brokerapi.PathDrain, scopes: marks, query: []string{"owner"}, handle: uncordon},
		{method: "POST", pattern: brokerapi.PathLost, scopes: operator, maxBody: maxBody, handle: lost},
		{method: "GET", pattern: brokerapi.PathPool, scopes: scaler, handle: getPool},
		{method: "PUT", pattern: brokerapi.PathPlan, scopes: scaler, maxBody: maxPlan, handle: putPlan},
		{method: "GET", pattern: brokerapi.PathLive, handle: live},
		{method: "GET", pattern: brokerapi.PathReady, handle: ready},
		{method: "GET", pattern: brokerapi.PathOpenAPI, handle: openAPI},
	}
	if metrics != nil {
		list = append(list, route{method: "GET", pattern: brokerapi.PathMetrics, scopes: []Scope{ScopeMetrics}, raw: metrics})
	}
	return list
}

// match finds the request's route. It works on the path as it was sent, never cleaned
// or redirected: a room may be named "..", "a/b" or "%".
func match(list []route, r *http.Request) (route, map[string]string, error) {
	segments := strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	var allow []string
	for _, rt := range list {
		names, ok, err := matchPattern(rt.pattern, segments)
		switch {
		case err != nil:
			return route{}, nil, err
		case !ok:
		case rt.method == r.Method || rt.method == "GET" && r.Method == "HEAD":
			return rt, names, nil
		default:
			allow = append(allow, rt.method)
		}
	}
	if allow != nil {
		return route{}, nil, &methodError{allow: strings.Join(allow, ", ")}
	}
	return route{}, nil, errNotFound
}

func matchPattern(pattern string, segments []string) (map[string]string, bool, error) {
	var names map[string]string
	i := 0
	for want := range strings.SplitSeq(strings.TrimPrefix(pattern, "/"), "/") {
		if i == len(segments) {
			return nil, false, nil
		}
		name, isName := strings.CutPrefix(want, "{")
		switch {
		case isName:
			v, err := url.PathUnescape(segments[i])
			if err != nil {
				return nil, false, &broker.InvalidError{Field: "path", Want: "has a % that starts no escape; write % as %25"}
			}
			if names == nil {
				names = map[string]string{}
			}
			names[strings.TrimSuffix(name, "}")] = v
		case want != segments[i]:
			return nil, false, nil
		}
		i++
	}
	return names, i == len(segments), nil
}

func checkNames(names map[string]string) error {
	if room, ok := names["room"]; ok {
		return broker.CheckRoom(room)
	}
	if in, ok := names["instance"]; ok {
		return broker.CheckInstance(in)
	}
	return nil
}
