package redisstore

import (
	"context"
	"crypto/rand"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/roomscaler/roomscaler/broker"
)

// The defaults of Options.
const (
	DefaultStepCap = 10 * time.Second // two sweeps of the default length
	DefaultTimeout = time.Second
)

// Options are the settings of a store.
type Options struct {
	Pool string // required; see broker.CheckPool
	// StepCap is the most that one step adds to the pool's clock: two sweeps. 0 means
	// DefaultStepCap. All brokers of a pool use the same.
	StepCap time.Duration
	// Timeout bounds each of connecting, sending and waiting for an answer; 0 means
	// DefaultTimeout. Used by Open alone.
	Timeout time.Duration
}

// Store is a broker.Store in Redis. It is safe for concurrent use. Its methods block
// until Redis answers, its client gives up or the context ends.
type Store struct {
	client  redis.UniversalClient
	keys    []string
	scripts scripts
}

var _ broker.Store = (*Store)(nil)

// New returns a store that uses the client, and from now on owns it: Close closes it. It sends nothing.
// Errors are *broker.InvalidError.
func New(client redis.UniversalClient, o Options) (*Store, error) {
	if err := broker.CheckPool(o.Pool); err != nil {
		return nil, err
	}
	if o.StepCap < 0 {
		return nil, &broker.InvalidError{Field: "StepCap", Want: "is negative; give two sweeps"}
	}
	if o.StepCap == 0 {
		o.StepCap = DefaultStepCap
	}
	s, err := newScripts(o.StepCap)
	if err != nil {
		return nil, err
	}
	return &Store{client: client, keys: keysOf(o.Pool), scripts: s}, nil
}

// Close closes the connections. Steps on their way end with ErrStoreUnavailable.
func (s *Store) Close() error { return s.client.Close() }

// step runs a script and returns its answer without the code. doing says what was attempted.
func (s *Store) step(ctx context.Context, doing string, script *redis.Script, term broker.Term, args ...any) (reply, error) {
	return s.run(ctx, doing, script, s.keys, term, args)
}

func (s *Store) run(ctx context.Context, doing string, script *redis.Script, keys []string, term broker.Term, args []any) (reply, error) {
	all := append([]any{string(term), rand.Text()}, args...)
	answer, err := script.Run(ctx, s.client, keys, all...).StringSlice()
	if err != nil {
		return reply{}, unavailable(doing, err)
	}
	return readReply(doing, answer)
}

func millis(d time.Duration) string   { return strconv.FormatInt(d.Milliseconds(), 10) }
func moment(t broker.PoolTime) string { return strconv.FormatInt(int64(t), 10) }

func flag(b bool) string {
	if b {
		return "1"
	}
	return ""
}
