package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// Without a way to Kubernetes, --kubernetes is a wrong flag: going on without it would take other bounds and end releases by
// time alone.
func TestScaler_KubernetesThatIsNotThere(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for config, want := range map[string]string{
		filepath.Join(t.TempDir(), "none"): "--kubernetes: no Kubernetes API is configured; run in a pod with a service account, or set KUBECONFIG",
		"kubernetes_test.go":               "--kubernetes: read the configuration of the Kubernetes client: ",
	} {
		t.Setenv("KUBECONFIG", config)
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), []string{"scaler", "--kubernetes", "--listen", "127.0.0.1:0", "--metrics-listen", "off"}, nil, &stdout, &stderr)
		if got := stderr.String(); code != exitUsage || !strings.HasPrefix(got, "roomscaler: "+want) || strings.Count(got, "\n") != 1 {
			t.Errorf("KUBECONFIG %s: code %d, %q", config, code, got)
		}
	}
}
