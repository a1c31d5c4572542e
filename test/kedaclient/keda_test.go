package kedaclient

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/kedacore/keda/v2/pkg/scalers"
	"github.com/kedacore/keda/v2/pkg/scalers/scalersconfig"
	v2 "k8s.io/api/autoscaling/v2"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
)

const metric = "s0-roomscaler-busy"

// config is that of a ScaledObject's only trigger.
func (s *server) config(pool string, metadata, auth map[string]string) *scalersconfig.ScalerConfig {
	m := map[string]string{"scalerAddress": s.address, "pool": pool, "targetSessionsPerInstance": "50", "minInstances": "0"}
	maps.Copy(m, metadata)
	return &scalersconfig.ScalerConfig{
		ScalableObjectName: "janus-" + pool, ScalableObjectNamespace: "media", ScalableObjectType: "ScaledObject", TriggerType: "external",
		TriggerMetadata: m, AuthParams: auth,
	}
}

func (s *server) keda(t *testing.T, pool string, metadata, auth map[string]string) scalers.Scaler {
	t.Helper()
	k, err := scalers.NewExternalScaler(s.config(pool, metadata, auth))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close(context.Background()) })
	return k
}

// evaluate is what KEDA does for each synchronisation of the HPA. It returns the value as the HPA gets it.
func evaluate(ctx context.Context, k scalers.Scaler) (value string, active bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	spec := k.GetMetricSpecForScaling(ctx)
	if len(spec) != 1 {
		return "", false, fmt.Errorf("%d metric specs", len(spec))
	}
	values, active, err := k.GetMetricsAndActivity(ctx, spec[0].External.Metric.Name)
	if err != nil {
		return "", false, err
	}
	if len(values) != 1 {
		return "", false, fmt.Errorf("%d values", len(values))
	}
	return values[0].Value.String(), active, nil
}

// gives3 asks until the busy pool's number comes, for a process that has just started.
func gives3(t *testing.T, k scalers.Scaler) {
	t.Helper()
	eventually(t, "the value is 3 and the pool active", func(ctx context.Context) error {
		value, active, err := evaluate(ctx, k)
		if err == nil && (value != "3" || !active) {
			err = fmt.Errorf("got %s, active %v", value, active)
		}
		return err
	})
}

func TestMetrics(t *testing.T) {
	s := newServer(t, newBroker(t))
	k := s.keda(t, "busy", nil, nil)
	t.Run("the first evaluation has the number of instances", func(t *testing.T) {
		if value, active, err := evaluate(t.Context(), k); err != nil || value != "3" || !active {
			t.Errorf("got %s, %v, %v, want 3, active", value, active, err)
		}
	})
	t.Run("the HPA gets an average value of 1 as its target", func(t *testing.T) {
		spec := k.GetMetricSpecForScaling(t.Context())
		if len(spec) != 1 || spec[0].External.Metric.Name != metric || spec[0].External.Target.Type != v2.AverageValueMetricType || spec[0].External.Target.AverageValue.String() != "1" {
			t.Errorf("got %+v", spec)
		}
	})
	t.Run("a pool at 0 without demand is not active", func(t *testing.T) {
		if value, active, err := evaluate(t.Context(), s.keda(t, "asleep", nil, nil)); err != nil || value != "0" || active {
			t.Errorf("got %s, %v, %v, want 0, not active", value, active, err)
		}
	})
	t.Run("wrong metadata is an error that names the key", func(t *testing.T) {
		_, _, err := s.keda(t, "busy", map[string]string{"cooldownWindow": "soon"}, nil).GetMetricsAndActivity(t.Context(), metric)
		if err == nil || !strings.Contains(err.Error(), "cooldownWindow") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a pool that the broker does not know is an error and no number, and has a target all the same", func(t *testing.T) {
		k := s.keda(t, "nowhere", nil, nil)
		if spec := k.GetMetricSpecForScaling(t.Context()); len(spec) != 1 {
			t.Errorf("spec %+v", spec)
		}
		if value, _, err := evaluate(t.Context(), k); err == nil {
			t.Errorf("got %s", value)
		}
	})
}

func TestTLS(t *testing.T) {
	ours, next, strange := newAuthority(t), newAuthority(t), newAuthority(t)
	refused := func(t *testing.T, s *server, auth map[string]string) {
		t.Helper()
		if value, _, err := evaluate(t.Context(), s.keda(t, "busy", map[string]string{"enableTLS": "true"}, auth)); err == nil {
			t.Errorf("got %s, want an error", value)
		}
	}
	client := func(trusts, signer *authority) map[string]string {
		_, _, cert, key := signer.sign(t)
		return map[string]string{"caCert": trusts.pem, "tlsClientCert": cert, "tlsClientKey": key}
	}
	t.Run("TLS", func(t *testing.T) {
		f := files{t.TempDir()}
		f.write(t, ours)
		s := newServer(t, newBroker(t), f.args()...)
		gives3(t, s.keda(t, "busy", map[string]string{"enableTLS": "true"}, map[string]string{"caCert": ours.pem}))
		gives3(t, s.keda(t, "busy", map[string]string{"enableTLS": "true", "unsafeSsl": "true"}, nil))
		t.Run("a client that does not trust the server gets nothing", func(t *testing.T) {
			refused(t, s, map[string]string{"caCert": strange.pem})
		})
		t.Run("plaintext gets nothing", func(t *testing.T) {
			if value, _, err := evaluate(t.Context(), s.keda(t, "busy", nil, nil)); err == nil {
				t.Errorf("got %s", value)
			}
		})
	})
	t.Run("mTLS", func(t *testing.T) {
		f := files{t.TempDir()}
		f.write(t, ours)
		s := newServer(t, newBroker(t), append(f.args(), f.clientCA(), "--max-connection-age=1s")...)
		k := s.keda(t, "busy", nil, client(ours, ours))
		gives3(t, k)
		t.Run("without a certificate a client gets nothing", func(t *testing.T) {
			refused(t, s, map[string]string{"caCert": ours.pem})
		})
		t.Run("with another authority's a client gets nothing", func(t *testing.T) {
			refused(t, s, client(ours, strange))
		})
		t.Run("new files are taken without a restart", func(t *testing.T) {
			f.write(t, next)
			gives3(t, s.keda(t, "busy", nil, client(next, next)))
			eventually(t, "the old authority is trusted no more", func(ctx context.Context) error {
				if _, _, err := evaluate(ctx, k); err != nil {
					return nil
				}
				return fmt.Errorf("it is let in")
			})
		})
	})
}

// kedaLog collects how long KEDA's push stream waits before each new try, and its errors.
type kedaLog struct {
	mu     sync.Mutex
	waits  []string
	errors []string
}

func (l *kedaLog) take(_, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case strings.Contains(args, "StreamIsActive retry backoff"):
		_, after, _ := strings.Cut(args, `"duration"=`)
		l.waits = append(l.waits, strings.Trim(after, `"`))
	case strings.Contains(args, "error running StreamIsActive"):
		l.errors = append(l.errors, args)
	}
}

// push runs KEDA's push stream of a pool until the test ends, and returns what it says.
func (s *server) push(t *testing.T, pool string, auth map[string]string) (<-chan bool, *kedaLog) {
	t.Helper()
	log := &kedaLog{}
	before := logf.Log
	logf.Log = funcr.New(log.take, funcr.Options{Verbosity: 1}) // a scaler takes it when it is made
	k, err := scalers.NewExternalPushScaler(s.config(pool, nil, auth))
	logf.Log = before
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	said := make(chan bool)
	ended := make(chan struct{})
	go func() { defer close(ended); k.Run(ctx, said) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		_ = k.Close(context.Background())
	})
	return said, log
}

func says(t *testing.T, said <-chan bool) {
	t.Helper()
	select {
	case active := <-said:
		if !active {
			t.Fatal("the stream says that the pool is not active")
		}
	case <-time.After(90 * time.Second):
		t.Fatal("the stream says nothing")
	}
}

func TestPush(t *testing.T) {
	t.Run("a pool at 0 is told to be active when somebody waits for a place, and not before", func(t *testing.T) {
		b := newBroker(t)
		s := newServer(t, b)
		if _, active, err := evaluate(t.Context(), s.keda(t, "asleep", nil, nil)); err != nil || active {
			t.Fatalf("active %v, %v", active, err)
		}
		said, _ := s.push(t, "asleep", nil)
		select {
		case <-said:
			t.Fatal("it says so before")
		case <-time.After(3 * time.Second):
		}
		b.queue("asleep", 5)
		says(t, said)
	})
	ours := newAuthority(t)
	f := files{t.TempDir()}
	f.write(t, ours)
	_, _, cert, key := ours.sign(t)
	for name, c := range map[string]struct {
		args []string
		auth map[string]string
	}{
		"plaintext": {},
		"mTLS":      {append(f.args(), f.clientCA()), map[string]string{"caCert": ours.pem, "tlsClientCert": cert, "tlsClientKey": key}},
	} {
		t.Run("connections that reach their age cost no call and let no wait grow: "+name, func(t *testing.T) {
			s := newServer(t, newBroker(t), append(c.args, "--max-connection-age=1s")...)
			k := s.keda(t, "busy", nil, c.auth)
			gives3(t, k)
			said, log := s.push(t, "busy", c.auth)
			for range 5 {
				says(t, said)
				for range 20 {
					if value, _, err := evaluate(t.Context(), k); err != nil || value != "3" {
						t.Fatalf("got %s, %v", value, err)
					}
				}
			}
			log.mu.Lock()
			defer log.mu.Unlock()
			if len(log.waits) < 4 {
				t.Errorf("waits %v, want one before each new stream", log.waits)
			}
			for _, w := range log.waits {
				if w != "2s" {
					t.Errorf("waits %v, want 2s each time", log.waits)
					break
				}
			}
			if len(log.errors) > 0 {
				t.Errorf("errors %q", log.errors)
			}
			if n := s.connections.Load(); n < 3 {
				t.Errorf("%d connections, want several", n)
			}
		})
	}
}

func TestRestart(t *testing.T) {
	for name, sig := range map[string]os.Signal{"stopped": syscall.SIGTERM, "killed": syscall.SIGKILL} {
		t.Run("a server that is "+name+" gives errors and no other number, and the same number when it is back", func(t *testing.T) {
			s := newServer(t, newBroker(t))
			k := s.keda(t, "busy", nil, nil)
			gives3(t, k)
			said, log := s.push(t, "busy", nil)
			says(t, said)
			s.end(sig)
			if value, _, err := evaluate(t.Context(), k); err == nil {
				t.Errorf("got %s without a server", value)
			}
			s.begin()
			eventually(t, "the value is 3 again, and never another", func(ctx context.Context) error {
				value, _, err := evaluate(ctx, k)
				if err == nil && value != "3" {
					t.Fatalf("got %s", value)
				}
				return err
			})
			says(t, said)
			log.mu.Lock()
			defer log.mu.Unlock()
			if first := log.waits[0]; first != "2s" {
				t.Errorf("the first wait was %s", first)
			}
			if stopped := sig == syscall.SIGTERM; stopped && len(log.errors) > 0 && strings.Contains(log.errors[0], "error reading from server") {
				t.Errorf("the stream was cut off by a server that was stopped: %s", log.errors[0])
			}
		})
	}
}
