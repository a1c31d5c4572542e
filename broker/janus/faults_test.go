package janus_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/backendtest"
	"github.com/roomscaler/roomscaler/broker/janus"
	"github.com/roomscaler/roomscaler/test/procs"
)

// wantLookFault looks at the address and checks the fault, its certainty and a piece of the advice.
func wantLookFault(t *testing.T, b *janus.Backend, address string, fault broker.Fault, certainty error, advice string) {
	t.Helper()
	_, err := b.Look(t.Context(), broker.Target{Pool: "p", Instance: "janus-0", Address: address}, broker.LookOptions{})
	var f *broker.FaultError
	if !errors.As(err, &f) {
		t.Fatalf("got %v, want a *broker.FaultError", err)
	}
	if f.Fault != fault || !errors.Is(err, certainty) {
		t.Errorf("got %v, want fault %q that wraps %q", err, fault, certainty)
	}
	if !strings.Contains(f.Advice, advice) {
		t.Errorf("advice %q does not say %q", f.Advice, advice)
	}
	for _, secret := range []string{adminSecret, adminKey} {
		if strings.Contains(err.Error()+f.Advice, secret) {
			t.Errorf("the secret is in %q or its advice", err)
		}
	}
}

func backend(secret, key string) *janus.Backend {
	return janus.New(janus.Options{AdminSecret: secret, AdminKey: key, Key: roomKey})
}

func TestBackend_Look_Faults(t *testing.T) {
	s := start(t, procs.JanusOptions{AdminKey: adminKey}, adminKey)
	good := backend(adminSecret, adminKey)
	admin := s.process.AdminURL()
	http := strings.TrimSuffix(s.process.HTTPURL(), "/janus")

	t.Run("a 403 inside a 200 is a wrong admin secret", func(t *testing.T) {
		wantLookFault(t, backend("wrong", adminKey), admin, broker.FaultUnauthorized, broker.ErrRefused, "admin secret")
	})
	t.Run("a 404 without a body is a web server without the admin API", func(t *testing.T) {
		wantLookFault(t, good, http+"/admin", broker.FaultAdminOff, broker.ErrRefused, "admin_http = true in janus.transport.http.jcfg")
	})
	t.Run("the Janus API is not the admin API", func(t *testing.T) {
		wantLookFault(t, good, http+"/janus", broker.FaultAdminOff, broker.ErrRefused, "7088")
	})
	t.Run("no admin key here and one at the videoroom", func(t *testing.T) {
		wantLookFault(t, backend(adminSecret, ""), admin, broker.FaultAdminKeyMissing, broker.ErrRefused, "admin_key of janus.plugin.videoroom.jcfg")
	})
	t.Run("another admin key at the videoroom", func(t *testing.T) {
		wantLookFault(t, backend(adminSecret, "wrong"), admin, broker.FaultAdminKeyWrong, broker.ErrRefused, "admin_key of janus.plugin.videoroom.jcfg")
	})
	t.Run("secrets that are set anew count from then on", func(t *testing.T) {
		b := backend("wrong", "wrong")
		b.SetSecrets(adminSecret, adminKey)
		if _, err := b.Look(t.Context(), broker.Target{Address: admin}, broker.LookOptions{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("a stopped process times out", func(t *testing.T) {
		s.process.Pause()
		defer s.process.Continue()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := good.Look(ctx, broker.Target{Address: admin}, broker.LookOptions{})
		if f := faultOf(t, err); f.Fault != broker.FaultTimeout || !errors.Is(err, broker.ErrUncertain) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a videoroom that hangs is told from a Janus that does", func(t *testing.T) {
		defer s.faults.Cause(backendtest.Trouble{Match: asks("list")}).Stop()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := s.Look(ctx, s.target, broker.LookOptions{})
		if f := faultOf(t, err); f.Fault != broker.FaultTimeout || !strings.Contains(f.Advice, "videoroom") {
			t.Errorf("got %v with advice %q", err, f.Advice)
		}
	})
	t.Run("nothing listens", func(t *testing.T) {
		s.process.Kill()
		wantLookFault(t, good, admin, broker.FaultRefused, broker.ErrRefused, "admin_http = true in janus.transport.http.jcfg")
	})
}

func faultOf(t *testing.T, err error) *broker.FaultError {
	t.Helper()
	var f *broker.FaultError
	if !errors.As(err, &f) {
		t.Fatalf("got %v, want a *broker.FaultError", err)
	}
	return f
}

func TestBackend_Look_AdminOff(t *testing.T) {
	// Another Janus may have the usual port on 127.0.0.1, so this one has a loopback address to itself.
	ip := fmt.Sprintf("127.88.%d.%d", os.Getpid()>>8&0xff, os.Getpid()&0xff)
	j, err := procs.StartJanus(t.Context(), procs.JanusOptions{IP: ip, HTTPPort: 8088, AdminOff: true})
	procs.Need(t, err)
	defer j.Kill()
	wantLookFault(t, backend(adminSecret, ""), j.AdminURL(), broker.FaultAdminOff, broker.ErrRefused, "admin_http = true")
}

func TestBackend_Look_PortClash(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }))
	defer other.Close()
	j, err := procs.StartJanus(t.Context(), procs.JanusOptions{AdminPort: other.Listener.Addr().(*net.TCPAddr).Port, Ready: procs.ReadyWS})
	procs.Need(t, err)
	defer j.Kill()
	wantLookFault(t, backend(adminSecret, adminKey), j.AdminURL(), broker.FaultOther, broker.ErrUncertain, "another program may have taken Janus's admin port")
}

func TestBackend_Look_NoVideoroom(t *testing.T) {
	s := start(t, procs.JanusOptions{NoVideoroom: true}, "")
	wantLookFault(t, backend(adminSecret, ""), s.process.AdminURL(), broker.FaultPluginMissing, broker.ErrRefused, "libjanus_videoroom.so")
}

// What no Janus does, but what may stand at its address.
func TestBackend_Look_Strangers(t *testing.T) {
	serve := func(status int, body func(request []byte) string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			w.WriteHeader(status)
			io.WriteString(w, body(b))
		}
	}
	echoed := func(b []byte) string { return strings.NewReplacer(`"`, `'`, `\`, ``).Replace(string(b)) }
	for _, c := range []struct {
		name      string
		handler   http.HandlerFunc
		fault     broker.Fault
		certainty error
	}{
		{"a proxy's error page", serve(502, func([]byte) string { return "<html>" }), broker.FaultOther, broker.ErrUncertain},
		{"an admin_acl without this address", serve(403, func([]byte) string { return "" }), broker.FaultUnauthorized, broker.ErrRefused},
		{"a redirect, which is not followed", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, broker.FaultOther, broker.ErrRefused},
		{"an answer without end", func(w http.ResponseWriter, r *http.Request) {
			for block := make([]byte, 1<<20); ; {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}, broker.FaultOther, broker.ErrUncertain},
		{"a success for another request", serve(200, func([]byte) string { return `{"janus":"success","transaction":"x","sessions":[]}` }), broker.FaultOther, broker.ErrUncertain},
		{"an error that echoes the request", serve(200, func(b []byte) string {
			return `{"janus":"error","error":{"code":499,"reason":"` + echoed(b) + `"}}`
		}), broker.FaultOther, broker.ErrRefused},
		{"an echo that is no HTTP", func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			defer c.Close()
			c.Write(append(b, "\r\n\r\n"...))
		}, broker.FaultUnreachable, broker.ErrUncertain},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(c.handler)
			defer server.Close()
			wantLookFault(t, backend(adminSecret, adminKey), server.URL+"/admin", c.fault, c.certainty, "")
		})
	}
	t.Run("a name that does not resolve", func(t *testing.T) {
		b := janus.New(janus.Options{AdminSecret: adminSecret, HTTP: &http.Client{Transport: &http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.DNSError{Err: "no such host", Name: "janus-0.janus", IsNotFound: true}
			},
		}}})
		wantLookFault(t, b, "http://janus-0.janus:7088/admin", broker.FaultUnreachable, broker.ErrRefused, "does not resolve")
	})
}
