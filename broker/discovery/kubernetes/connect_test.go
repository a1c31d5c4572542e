package kubernetes_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/discovery/kubernetes"
)

func TestConnect(t *testing.T) {
	t.Run("without a cluster and a file it says what to do", func(t *testing.T) {
		t.Setenv("KUBERNETES_SERVICE_HOST", "")
		t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
		_, err := kubernetes.Connect()
		if wrong, ok := errors.AsType[*broker.InvalidError](err); !ok || !strings.Contains(wrong.Want, "set KUBECONFIG") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the file in KUBECONFIG leads to the server, and what that says of rights is told", func(t *testing.T) {
		api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"` + r.UserAgent() + ` may not"}`))
		}))
		defer api.Close()
		f := finderOf(t, api.URL)
		if _, err := f.Find(t.Context()); err == nil || !strings.Contains(err.Error(), "watching endpointslices in media: roomscaler-broker may not") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a server that is not there is told in few words, the same each time", func(t *testing.T) {
		api := httptest.NewServer(nil)
		api.Close()
		f := finderOf(t, api.URL)
		if _, err := f.Find(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "watching endpointslices in media: dial tcp") {
			t.Errorf("got %v", err)
		}
	})
}

// finderOf returns a running finder of media/janus at an API server.
func finderOf(t *testing.T, server string) *kubernetes.Finder {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	config := "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: " + server + "}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: t}}]\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	c, err := kubernetes.Connect()
	if err != nil {
		t.Fatal(err)
	}
	place, err := kubernetes.Parse("media/janus")
	if err != nil {
		t.Fatal(err)
	}
	f := kubernetes.New(place, c)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); f.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return f
}
