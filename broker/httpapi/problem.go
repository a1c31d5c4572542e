package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

// The errors that arise here.
var (
	errNotFound     = errors.New("no such path")
	errPoolNotFound = errors.New("no such pool")
	errUnauthorized = errors.New("no token, or one that is not known")
	errForbidden    = errors.New("the token's scope does not cover this call")
	errCrossOrigin  = errors.New("a browser's call from another origin")
	errForeignHost  = errors.New("a call by a name that is not loopback's")
	errNotReady     = errors.New("not ready")
	errPanic        = errors.New("panic")
)

type methodError struct{ allow string }

func (e *methodError) Error() string { return "method not allowed; use " + e.allow }

type sizeError struct{ limit int64 }

func (e *sizeError) Error() string {
	return "body: longer than " + strconv.FormatInt(e.limit, 10) + " bytes"
}

// detailError adds to an error what its caller shall read. It must hold no secret.
type detailError struct {
	detail string
	err    error
}

func (e *detailError) Error() string { return e.err.Error() + ": " + e.detail }
func (e *detailError) Unwrap() error { return e.err }

// problems is the one table from errors to answers; the first that fits counts. An
// error's own text is never sent, since it may name stores and their passwords.
var problems = []struct {
	err    error
	status int
	code   string
	retry  int // seconds; 0: no Retry-After
	title  string
	detail string
}{
	{errNotFound, 404, brokerapi.CodeNotFound, 0, "There is nothing at this path", "see /openapi.json for the paths"},
	{errPoolNotFound, 404, brokerapi.CodePoolNotFound, 0, "There is no such pool", "this broker serves only the pools of its flags or configuration"},
	{errUnauthorized, 401, brokerapi.CodeUnauthorized, 0, "A known token is needed", "send one of the token file as Authorization: Bearer TOKEN"},
	{errForbidden, 403, brokerapi.CodeForbidden, 0, "The token does not cover this call", "use a token of the scope and pool that this call needs"},
	{errCrossOrigin, 403, brokerapi.CodeForbidden, 0, "Web pages of other origins may not call", "give the broker a token file, or call from outside a browser"},
	{errForeignHost, 403, brokerapi.CodeForbidden, 0, "Without tokens this broker answers to localhost only", "call it as 127.0.0.1 or localhost, or give it a token file"},
	{errNotReady, 503, brokerapi.CodeNotReady, 1, "Not ready", ""},
	{broker.ErrRoomNotFound, 404, brokerapi.CodeRoomNotFound, 0, "There is no such room", "create it with PUT"},
	{broker.ErrInstanceNotFound, 404, brokerapi.CodeInstanceNotFound, 0, "There is no such instance", "see the pool's list of instances"},
	{broker.ErrMarkNotFound, 404, brokerapi.CodeMarkNotFound, 0, "The owner has no mark on the instance", "set it with POST"},
	{broker.ErrNeverFits, 422, brokerapi.CodeNeverFits, 0, "The room can never fit on one instance", "expect fewer participants, or raise --max-sessions"},
	{broker.ErrSettingsDiffer, 409, brokerapi.CodeSettingsDiffer, 0, "The room exists with other settings", "ask with the settings it was created with, or delete it first"},
	{broker.ErrReleased, 409, brokerapi.CodeReleased, 0, "The instance is past its point of no return", "its removal has been answered to KEDA; it takes rooms again only if that is taken back"},
	{broker.ErrVersion, 412, brokerapi.CodePlanVersion, 0, "The plan has another version", "fetch the pool's facts and decide again"},
	{broker.ErrBusy, 503, brokerapi.CodeBusy, 1, "The room is being made or torn down by another caller", "ask again"},
	{broker.ErrStale, 412, brokerapi.CodeStale, 0, "It has changed meanwhile", "fetch it again"},
	{broker.ErrQueueFull, 503, brokerapi.CodeQueueFull, 10, "Too many creates are waiting", "ask again later; the demand is counted"},
	{broker.ErrNoCapacity, 503, brokerapi.CodeNoCapacity, 5, "No instance can take the room now", "ask again; the demand is counted"},
	{broker.ErrRebuilding, 503, brokerapi.CodeRebuilding, 2, "The directory is being rebuilt", "ask again; running calls are not affected"},
	{broker.ErrStoreLost, 503, brokerapi.CodeRebuilding, 2, "The directory is being rebuilt", "ask again; running calls are not affected"},
	{broker.ErrTerm, 503, brokerapi.CodeRebuilding, 1, "The directory has been rebuilt", "fetch the pool's facts and ask again"},
	{broker.ErrStoreUnavailable, 503, brokerapi.CodeStoreUnavailable, 2, "The store does not answer", "ask again; the call may have taken effect"},
	{broker.ErrUncertain, 504, brokerapi.CodeInstanceUnreachable, 2, "The instance did not answer", "ask again; the call may have taken effect"},
	{broker.ErrRefused, 502, brokerapi.CodeInstanceRefused, 5, "The instance refused", "see the instance's reason and advice"},
	{context.DeadlineExceeded, 503, brokerapi.CodeTimeout, 1, "The call took too long", "ask again; the call may have taken effect"},
	{context.Canceled, 503, brokerapi.CodeTimeout, 1, "The call was given up", "ask again; the call may have taken effect"},
}

func problemOf(err error) *brokerapi.Problem {
	if e, ok := errors.AsType[*broker.InvalidError](err); ok {
		return problem(400, brokerapi.CodeInvalid, "The request is not valid", e.Error(), e.Field)
	}
	if e, ok := errors.AsType[*sizeError](err); ok {
		return problem(413, brokerapi.CodeTooLarge, "The body is too large", e.Error(), "body")
	}
	if e, ok := errors.AsType[*methodError](err); ok {
		return problem(405, brokerapi.CodeMethodNotAllowed, "The path has no such method", "use "+e.allow, "")
	}
	if e, ok := errors.AsType[*broker.SealError](err); ok {
		p := problem(409, brokerapi.CodeSealRefused, "An instance that the plan takes away may not go", "look at the refusals, fetch the pool's facts and decide again", "")
		for _, r := range e.Refusals {
			p.Refusals = append(p.Refusals, brokerapi.SealRefusal{Instance: r.Instance, Ordinal: r.Ordinal, Why: r.Why, Rooms: r.Pins})
		}
		return p
	}
	for _, row := range problems {
		if !errors.Is(err, row.err) {
			continue
		}
		p := problem(row.status, row.code, row.title, row.detail, "")
		p.RetryAfter = row.retry
		if d, ok := errors.AsType[*detailError](err); ok {
			p.Detail = d.detail
		} else if e, ok := errors.AsType[*broker.RebuildingError](err); ok && e.Waiting != "" {
			p.Detail = "waiting for " + e.Waiting + " to answer; ask again, running calls are not affected"
		} else if f, ok := errors.AsType[*broker.FaultError](err); ok && f.Advice != "" {
			p.Detail = f.Advice
		}
		return p
	}
	return problem(500, brokerapi.CodeInternal, "Something is wrong in the broker", "its log says what", "")
}

func problem(status int, code, title, detail, field string) *brokerapi.Problem {
	return &brokerapi.Problem{Type: "urn:roomscaler:problem:" + code, Title: title, Status: status, Detail: detail, Code: code, Field: field}
}

func writeProblem(w http.ResponseWriter, p *brokerapi.Problem) {
	if p.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.RetryAfter))
	}
	switch p.Status {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="roomscaler"`)
	case http.StatusMethodNotAllowed:
		w.Header().Set("Allow", p.Detail[len("use "):])
	}
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and numbers alone: cannot fail
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	w.Write(append(b, '\n')) // an error here means that the caller has gone
}

// answer is what a successful call says.
type answer struct {
	status int    // 0 = 200
	etag   string // without quotes; "" = none
	body   any    // nil = none
}

// write fails before anything is sent, or not at all.
func (a answer) write(w http.ResponseWriter) error {
	var b []byte
	if a.body != nil {
		var err error
		if b, err = json.Marshal(a.body); err != nil {
			return err
		}
		b = append(b, '\n')
		w.Header().Set("Content-Type", "application/json")
	}
	if a.etag != "" {
		w.Header().Set("ETag", `"`+a.etag+`"`)
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	w.WriteHeader(a.status)
	w.Write(b) // an error here means that the caller has gone
	return nil
}
