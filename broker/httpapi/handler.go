// Package httpapi is the broker's HTTP API: it turns requests into calls of a pool's
// service and errors into problem documents. It keeps no state besides its tokens,
// opens no listener and starts no goroutine.
package httpapi

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/brokerapi"
)

// Pool is what the API needs of a pool's service. Errors are those of package broker, wrapped or not.
type Pool interface {
	CreateRoomWithin(ctx context.Context, r broker.CreateRequest, wait time.Duration) (p broker.Placed, fresh bool, err error)
	Lookup(ctx context.Context, room string, touch bool) (broker.Placed, error)
	DeleteRoom(ctx context.Context, room string, epoch broker.Epoch) error
	Rooms(ctx context.Context, instance, after string, limit int) ([]broker.Placed, error)
	Facts(ctx context.Context) (broker.Facts, error)
	Instance(ctx context.Context, name string) (broker.Instance, broker.PoolTime, error)
	Drain(ctx context.Context, instance string, m broker.MarkRequest) (broker.DrainStatus, error)
	DrainStatus(ctx context.Context, instance string, owner broker.Owner, wait time.Duration) (broker.DrainStatus, error)
	Uncordon(ctx context.Context, instance string, owner broker.Owner) (broker.Instance, error)
	Lost(ctx context.Context, instance, incarnation string) ([]broker.Pin, error)
	PutPlan(ctx context.Context, term broker.Term, u broker.PlanUpdate) (broker.Plan, error)
	Swept() bool
	EmptyWhen(broker.Facts) broker.EmptyWhen
}

// Served is a pool with what the API adds to its answers.
type Served struct {
	Pool Pool
	URLs URLs
	// ICEServers are told with each pin; none: the pin says nothing of them.
	ICEServers []brokerapi.ICEServer
	// Token makes the token that a client shows to the media server; nil: it wants none.
	Token func() string
}

// Options temper a Handler. The zero value is a handler without tokens.
type Options struct {
	// Tokens says who may call; nil: everybody may everything, so listen on loopback only.
	Tokens *Tokens
	// LocalHosts refuses requests that were not addressed to an IP of loopback or to localhost. A
	// listener on loopback needs it where there are no tokens: a web page may be served under a name
	// that then resolves to loopback, and its calls are of no other origin.
	LocalHosts bool
	// Timeout bounds each request besides what it asks to wait; 0 = 10 s.
	Timeout time.Duration
	// Metrics is served at /metrics; nil: nothing is.
	Metrics http.Handler
	// Observe is told of each answered request; nil: nobody is. The route is a pattern
	// of brokerapi, or "" where none fits.
	Observe func(route, method string, status int, took time.Duration)
	// Log gets what no caller is told: the text of internal errors. nil: dropped.
	Log *slog.Logger
}

// Handler serves the API. It is safe for concurrent use.
type Handler struct {
	pools    atomic.Pointer[map[string]Served]
	o        Options
	routes   []route
	csrf     *http.CrossOriginProtection
	stopping chan struct{}
	stop     func()
}

// New returns a handler of the given pools by name.
func New(pools map[string]Served, o Options) *Handler {
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Observe == nil {
		o.Observe = func(string, string, int, time.Duration) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	stopping := make(chan struct{})
	h := &Handler{
		o: o, routes: routes(o.Metrics), csrf: http.NewCrossOriginProtection(),
		stopping: stopping, stop: sync.OnceFunc(func() { close(stopping) }),
	}
	h.SetPools(pools)
	return h
}

// SetPools replaces the pools for the requests to come. The map must not be changed afterwards.
func (h *Handler) SetPools(pools map[string]Served) { h.pools.Store(&pools) }

// Stop turns readiness off and has held requests answered at once. All else goes on
// being served.
func (h *Handler) Stop() { h.stop() }

// ServeHTTP serves one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	rec := &recorder{ResponseWriter: w}
	pattern := h.serve(rec, r)
	h.o.Observe(pattern, r.Method, rec.status, time.Since(begin))
}

// serve returns the pattern of the route that it took.
func (h *Handler) serve(w *recorder, r *http.Request) (pattern string) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if v == http.ErrAbortHandler {
			panic(v)
		}
		h.o.Log.Error("panic in a request", "route", pattern, "panic", v)
		if w.status == 0 {
			writeProblem(w, problemOf(errPanic))
		}
	}()
	w.Header().Set("Cache-Control", "no-store") // answers hold join PINs and change at any time
	w.Header().Set("X-Content-Type-Options", "nosniff")
	rt, names, err := match(h.routes, r)
	pattern = rt.pattern
	if err == nil && rt.raw != nil {
		if err = h.admit(rt, names, r); err == nil {
			rt.raw.ServeHTTP(w, r)
			return pattern
		}
	}
	var a answer
	if err == nil {
		a, err = h.call(rt, names, w, r)
	}
	if err == nil {
		err = a.write(w)
	}
	if err != nil {
		p := problemOf(err)
		if p.Status >= http.StatusInternalServerError {
			level := slog.LevelDebug // what hinders many requests is counted, and told by the sweeps
			if p.Code == brokerapi.CodeInternal {
				level = slog.LevelError
			}
			h.o.Log.Log(r.Context(), level, "request failed", "route", pattern, "method", r.Method, "pool", names["pool"], "code", p.Code, "error", err)
		}
		writeProblem(w, p)
	}
	return pattern
}

func (h *Handler) call(rt route, names map[string]string, w http.ResponseWriter, r *http.Request) (answer, error) {
	c := &call{names: names, header: r.Header, stopping: h.stopping}
	if rt.scopes != nil {
		who, err := h.authenticate(r)
		if err != nil {
			return answer{}, err
		}
		c.who = who
		if err := who.mayCall(rt, names["pool"]); err != nil {
			return answer{}, err
		}
	}
	if name, ok := names["pool"]; ok {
		if c.served, ok = (*h.pools.Load())[name]; !ok {
			return answer{}, errPoolNotFound
		}
	}
	var err error
	if c.query, err = readQuery(r, rt.query); err != nil {
		return answer{}, err
	}
	if err := checkNames(names); err != nil {
		return answer{}, err
	}
	if c.body, err = readBody(w, r, rt.maxBody); err != nil {
		return answer{}, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.o.Timeout+c.query.wait)
	defer cancel()
	return rt.handle(ctx, h, c)
}

// admit checks the caller of a raw route.
func (h *Handler) admit(rt route, names map[string]string, r *http.Request) error {
	if rt.scopes == nil {
		return nil
	}
	who, err := h.authenticate(r)
	if err != nil {
		return err
	}
	return who.mayCall(rt, names["pool"])
}

func (h *Handler) authenticate(r *http.Request) (principal, error) {
	if h.o.LocalHosts && !localHost(r.Host) {
		return principal{}, errForeignHost
	}
	if h.o.Tokens == nil {
		// Without tokens a web page open on the same machine could call; browsers say so.
		if h.csrf.Check(r) != nil {
			return principal{}, errCrossOrigin
		}
		return principal{open: true}, nil
	}
	return h.o.Tokens.principal(r.Header.Get("Authorization"))
}

func localHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// recorder remembers the status for Observe.
type recorder struct {
	http.ResponseWriter
	status int
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
