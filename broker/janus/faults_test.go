package janus_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
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
	j, err := procs.StartJanus(t.Context(), procs.JanusOptions{AdminOff: true})
	procs.Need(t, err)
	defer j.Kill()
	// The Janus API must be seen at its usual port, which on 127.0.0.1 may be anybody's; Janus itself takes no other loopback address.
	ip := fmt.Sprintf("127.88.%d.%d", os.Getpid()>>8&0xff, os.Getpid()&0xff)
	l, err := net.Listen("tcp", net.JoinHostPort(ip, "8088"))
	if err != nil {
		t.Fatal(err)
	}
	api, err := url.Parse(strings.TrimSuffix(j.HTTPURL(), "/janus"))
	if err != nil {
		t.Fatal(err)
	}
	usual := httptest.Server{Listener: l, Config: &http.Server{Handler: httputil.NewSingleHostReverseProxy(api)}}
	usual.Start()
	defer usual.Close()
	wantLookFault(t, backend(adminSecret, ""), "http://"+net.JoinHostPort(ip, "7088")+"/admin", broker.FaultAdminOff, broker.ErrRefused, "admin_http = true")
	t.Run("where no Janus answers either, nothing says more than that nothing listens", func(t *testing.T) {
		usual.Close()
		wantLookFault(t, backend(adminSecret, ""), "http://"+net.JoinHostPort(ip, "7088")+"/admin", broker.FaultRefused, broker.ErrRefused, "nothing listens")
	})
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

// asGood answers everything that a look asks.
func asGood(transaction string) string {
	return `{"janus":"success","transaction":"` + transaction + `","sessions":[],"status":{"session_timeout":60},"response":{"list":[],"exists":false}}`
}

// secretsFirst puts what is secret in a request to the front, where an error's text is not cut yet.
func secretsFirst(request json.RawMessage) string {
	var r struct {
		Secret string `json:"secret"`
		PIN    string `json:"pin"`
		Key    string `json:"admin_key"`
	}
	if json.Unmarshal(request, &r) != nil {
		return ""
	}
	return r.Secret + r.PIN + r.Key
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
		{"an answer that is too long", serve(200, func(b []byte) string {
			var asked struct {
				Transaction string `json:"transaction"`
			}
			if json.Unmarshal(b, &asked) != nil {
				return ""
			}
			return strings.Repeat(" ", 33<<20) + asGood(asked.Transaction)
		}), broker.FaultOther, broker.ErrUncertain},
		{"a success for another request", serve(200, func([]byte) string { return asGood("x") }), broker.FaultOther, broker.ErrUncertain},
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
	t.Run("a refusal that echoes a create shows neither the room's secret nor its PIN", func(t *testing.T) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var asked struct {
				Transaction string          `json:"transaction"`
				Request     json.RawMessage `json:"request"`
			}
			if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
				return
			}
			answer := fmt.Sprintf(`{"error_code":430,"error":%q}`, secretsFirst(asked.Request))
			if bytes.Contains(asked.Request, []byte(`"list`)) {
				answer = `{"list":[],"participants":[]}`
			}
			fmt.Fprintf(w, `{"janus":"success","transaction":%q,"response":%s}`, asked.Transaction, answer)
		}))
		defer server.Close()
		at := broker.Target{Pool: "p", Instance: "janus-0", Address: server.URL + "/admin"}
		r := broker.RoomSpec{RoomMark: broker.RoomMark{Pool: "p", Room: "r", Epoch: 5}}
		for _, err := range []error{
			backend(adminSecret, adminKey).Create(t.Context(), at, r),
			backend(adminSecret, adminKey).Destroy(t.Context(), at, broker.RoomRef{Room: "r", Epoch: 5}, broker.DestroyOptions{}),
		} {
			checkFault(t, err)
			if !strings.Contains(fmt.Sprint(err), "[hidden]") {
				t.Errorf("%v shows no echo, so this test shows nothing", err)
			}
		}
	})
	for _, step := range []string{"list_sessions", "destroy_session"} {
		t.Run("a destroy that is refused "+step+" after it may have had its effect", func(t *testing.T) {
			var destroyed atomic.Bool
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var asked struct {
					Janus       string `json:"janus"`
					Transaction string `json:"transaction"`
					Request     struct {
						Request string `json:"request"`
					} `json:"request"`
				}
				if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
					return
				}
				answer := `"janus":"success","sessions":[1],"handles":[2],"response":{"participants":[{}]},
					"info":{"plugin":"janus.plugin.videoroom","plugin_specific":{"type":"publisher","room":5}}`
				if asked.Janus == step && destroyed.Load() {
					answer = `"janus":"error","error":{"code":403,"reason":"Unauthorized request (wrong or missing secret/token)"}`
				}
				destroyed.CompareAndSwap(false, asked.Request.Request == "destroy")
				fmt.Fprintf(w, `{"transaction":%q,%s}`, asked.Transaction, answer)
			}))
			defer server.Close()
			at := broker.Target{Pool: "p", Instance: "janus-0", Address: server.URL + "/admin"}
			err := backend(adminSecret, "").Destroy(t.Context(), at, broker.RoomRef{Room: "r", Epoch: 5}, broker.DestroyOptions{})
			if f := faultOf(t, err); f.Fault != broker.FaultUnauthorized || !errors.Is(err, broker.ErrUncertain) || errors.Is(err, broker.ErrRefused) {
				t.Errorf("got %v, want an uncertain one", err)
			}
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
