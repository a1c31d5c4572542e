package kedaclient

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// object is JSON.
type object = map[string]any

// broker answers a scaler as a broker does, with facts that a test sets. Each pool is one of this process's life.
type broker struct {
	url string

	mu    sync.Mutex
	began time.Time
	pools map[string]*pool
}

type pool struct {
	instances int // ready ones, with 40 sessions each
	waiting   int // participants that found no place
	plan      object
	stored    time.Time
}

// newBroker has a pool "busy" with three instances and one, "asleep", with none.
func newBroker(t *testing.T) *broker {
	t.Helper()
	b := &broker{began: time.Now(), pools: map[string]*pool{"busy": {instances: 3}, "asleep": {}}}
	m := http.NewServeMux()
	m.HandleFunc("GET /v1/pools/{pool}", b.facts)
	m.HandleFunc("PUT /v1/pools/{pool}/plan", b.put)
	m.HandleFunc("/v1/pools/{pool}/instances/{instance}/drain", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, object{"result": "waiting"})
	})
	s := httptest.NewServer(m)
	t.Cleanup(s.Close)
	b.url = s.URL
	return b
}

// queue says how many people wait for a place in the pool.
func (b *broker) queue(pool string, people int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pools[pool].waiting = people
}

func (b *broker) facts(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	name := r.PathValue("pool")
	p := b.pools[name]
	if p == nil {
		answer(w, http.StatusNotFound, object{"code": "pool_not_found", "title": "no such pool"})
		return
	}
	facts := object{
		"pool": name, "term": "t1", "phase": "ready", "now_ms": 1_000_000 + time.Since(b.began).Milliseconds(), "floor": 0,
		"queue": object{"rooms": p.waiting, "participants": p.waiting}, "empty_when": "sessions", "instances": []object{},
	}
	var list []object
	for i := range p.instances {
		list = append(list, object{
			"name": fmt.Sprintf("janus-%d", i), "ordinal": i, "address": "http://127.0.0.1:1/admin", "incarnation": fmt.Sprint("life-", i), "state": "ready",
			"sessions": 40, "participants": 40, "rooms": 10, "rooms_left": 10, "age_ms": 500, "reserved": 0, "known_ms": 3_600_000, "marks": []object{},
		})
	}
	if list != nil {
		facts["instances"] = list
	}
	if p.plan != nil {
		p.plan["age_ms"] = time.Since(p.stored).Milliseconds()
		facts["plan"] = p.plan
	}
	answer(w, http.StatusOK, facts)
}

func (b *broker) put(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pools[r.PathValue("pool")]
	version := 0
	if p.plan != nil {
		version = p.plan["version"].(int)
	}
	if strings.Trim(r.Header.Get("If-Match"), `"`) != fmt.Sprint(version) {
		answer(w, http.StatusPreconditionFailed, object{"code": "plan_version", "title": "the plan has another version"})
		return
	}
	var plan struct {
		Desired int             `json:"desired"`
		Body    json.RawMessage `json:"body"`
	}
	if err := json.NewDecoder(r.Body).Decode(&plan); err != nil {
		answer(w, http.StatusBadRequest, object{"code": "invalid", "title": err.Error()})
		return
	}
	p.plan, p.stored = object{"version": version + 1, "desired": plan.Desired, "age_ms": 0, "body": plan.Body}, time.Now()
	answer(w, http.StatusOK, p.plan)
}

func answer(w http.ResponseWriter, status int, v object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
