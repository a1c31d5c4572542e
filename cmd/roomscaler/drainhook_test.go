package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/broker/janus"
	"github.com/roomscaler/roomscaler/drainhook"
	"github.com/roomscaler/roomscaler/test/januscli"
	"github.com/roomscaler/roomscaler/test/procs"
)

const hookSecret = "adminsecret"

// hookBed is a real Janus with a broker that answers from it.
type hookBed struct {
	janus  *procs.Janus
	broker *httptest.Server
	asked  chan struct{} // one for each time the broker was asked, as far as it is read
	auth   atomic.Value  // the last Authorization header
}

func newHookBed(t *testing.T) *hookBed {
	t.Helper()
	j, err := procs.StartJanus(t.Context(), procs.JanusOptions{AdminSecret: hookSecret})
	procs.Need(t, err)
	t.Cleanup(j.Kill)
	b := &hookBed{janus: j, asked: make(chan struct{}, 1000)}
	admin := janus.NewClient(hookSecret, "", nil)
	b.broker = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.auth.Store(r.Header.Get("Authorization"))
		n, err := admin.Sessions(r.Context(), j.AdminURL())
		d := brokerapi.Drain{Result: brokerapi.DrainWaiting, Instance: "janus-0", Owner: "hook", Sessions: &n, AgeMS: new(int64)}
		if err == nil && n == 0 {
			d.Result = brokerapi.DrainEmpty
		}
		_ = json.NewEncoder(w).Encode(d)
		b.asked <- struct{}{}
	}))
	t.Cleanup(b.broker.Close)
	return b
}

// hook runs the subcommand with b's addresses and the arguments, and returns its exit
// code and what it wrote.
func (b *hookBed) hook(t *testing.T, args ...string) (int, string) {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(hookSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return runHook(t, append([]string{
		"--broker", b.broker.URL, "--pool", "p", "--instance", "janus-0",
		"--janus-admin-url", b.janus.AdminURL(), "--janus-admin-secret-file", secret,
	}, args...)...)
}

func runHook(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	c := drainhookCommand()
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(&out)
	c.SilenceUsage = true
	err := c.ExecuteContext(t.Context())
	var exit *exitError
	switch {
	case err == nil:
		return 0, out.String()
	case errors.As(err, &exit):
		return exit.code, out.String()
	}
	return -1, out.String()
}

func (b *hookBed) accepting(t *testing.T) bool {
	t.Helper()
	r, err := http.Get(b.janus.HTTPURL() + "/info")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var info struct {
		Accepting bool `json:"accepting-new-sessions"`
	}
	if err := json.NewDecoder(r.Body).Decode(&info); err != nil {
		t.Fatal(err)
	}
	return info.Accepting
}

func TestDrainhook_RealJanus(t *testing.T) {
	b := newHookBed(t)
	open := func(t *testing.T) *januscli.Session {
		t.Helper()
		s, err := januscli.Open(t.Context(), b.janus.HTTPURL(), januscli.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}

	t.Run("a grace that is over ends with code 3 and the number of those left", func(t *testing.T) {
		s := open(t)
		defer s.Close(context.WithoutCancel(t.Context()))
		code, out := b.hook(t, "--drain-grace", "1s")
		if code != exitExpired || !strings.Contains(out, "sessions left 1") {
			t.Errorf("exit code %d\n%s", code, out)
		}
	})
	t.Run("a token file that cannot be read ends nothing early", func(t *testing.T) {
		s := open(t)
		defer s.Close(context.WithoutCancel(t.Context()))
		code, out := b.hook(t, "--drain-grace", "1s", "--broker-token-file", filepath.Join(t.TempDir(), "none"))
		if code != exitExpired || !strings.Contains(out, "--broker-token-file") || !strings.Contains(out, "sessions left 1") {
			t.Errorf("exit code %d\n%s", code, out)
		}
	})
	t.Run("a session holds it, and its end lets it go behind a closed door", func(t *testing.T) {
		token := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(token, []byte("secret-token\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t)
		for len(b.asked) > 0 {
			<-b.asked
		}
		closed := make(chan error, 1)
		go func() {
			<-b.asked // the mark
			<-b.asked // the wait
			closed <- s.Close(context.WithoutCancel(t.Context()))
		}()
		code, out := b.hook(t, "--drain-grace", "1m", "--broker-token-file", token)
		select {
		case err := <-closed:
			if err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatal("it ended before the session did")
		}
		if code != 0 || b.accepting(t) {
			t.Errorf("exit code %d, accepting %v\n%s", code, b.accepting(t), out)
		}
		if got := b.auth.Load(); got != "Bearer secret-token" {
			t.Errorf("Authorization is %q", got)
		}
		if strings.Contains(out, "secret-token") || strings.Contains(out, hookSecret) {
			t.Errorf("a secret is in the log: %s", out)
		}
	})
}

func TestLocalJanus(t *testing.T) {
	b := newHookBed(t)
	l := &localJanus{address: b.janus.AdminURL(), client: janus.NewClient("wrong", "", nil)}
	if _, err := l.Sessions(t.Context()); err == nil || errors.Is(err, drainhook.ErrGone) {
		t.Errorf("a wrong secret: got %v, want an error other than ErrGone", err)
	}
	b.janus.Pause()
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := l.Sessions(short); err == nil || errors.Is(err, drainhook.ErrGone) {
		t.Errorf("a hung server: got %v, want an error other than ErrGone", err)
	}
	b.janus.Continue()
	b.janus.Kill()
	if _, err := l.Sessions(t.Context()); !errors.Is(err, drainhook.ErrGone) {
		t.Errorf("a server that has ended: got %v, want ErrGone", err)
	}
}

func TestDrainhook_Flags(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--pool", "Upper", "--instance", "janus-0"}, "--pool: "},
		{[]string{"--pool", "p", "--instance", "a b"}, "--instance: "},
		{[]string{"--pool", "p", "--instance", "janus-0", "--drain-grace", "0s"}, "--drain-grace: "},
		{[]string{"--pool", "p", "--instance", "janus-0", "--broker", "broker:8080"}, "--broker: "},
		{[]string{"--pool", "p", "--instance", "janus-0", "--janus-admin-url", "7088"}, "--janus-admin-url: "},
	} {
		code, out := runHook(t, tc.args...)
		if code != exitUsage || !strings.Contains(out, tc.want) || strings.Count(strings.TrimSpace(out), "\n") != 0 {
			t.Errorf("%q: exit code %d, %q; want %d and one line with %q", tc.args, code, out, exitUsage, tc.want)
		}
	}
}
