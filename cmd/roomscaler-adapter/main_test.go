package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const pools = "pools: [{namespace: media, pool: video, targetSessionsPerInstance: 40}]"

func TestRun_Mistakes(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := "--config=" + file("good.yaml", pools)
	for name, tc := range map[string]struct {
		args, env []string
		code      int
		want      string
	}{
		"it wants a configuration":                   {nil, nil, exitUsage, "--config: is missing"},
		"a file that is not there is told":           {[]string{"--config=" + dir + "/none"}, nil, exitUsage, "--config: open"},
		"a mistake in it is told with its line":      {[]string{"--config=" + file("bad.yaml", "pools:\n  - {pool: video}")}, nil, exitUsage, "line 2: namespace"},
		"the environment is read":                    {nil, []string{"ROOMSCALER_CONFIG=" + dir + "/none"}, exitUsage, "--config: open"},
		"a flag goes before the environment":         {[]string{good, "--broker=nonsense"}, []string{"ROOMSCALER_CONFIG=" + dir + "/none"}, exitUsage, "--broker:"},
		"a wrong value in the environment is told":   {[]string{good}, []string{"ROOMSCALER_SECURE_PORT=x"}, exitUsage, "ROOMSCALER_SECURE_PORT"},
		"a flag that nobody knows is told":           {[]string{"--pool=video"}, nil, exitUsage, "unknown flag"},
		"it takes no argument":                       {[]string{"video"}, nil, exitUsage, "takes no argument"},
		"a token's file must be there":               {[]string{good, "--broker-token-file=" + dir + "/none"}, nil, exitUsage, "--broker-token-file"},
		"a certificate needs its key":                {[]string{good, "--broker-cert=" + dir + "/none"}, nil, exitUsage, "--broker-key"},
		"an authority's file must hold one":          {[]string{good, "--broker-ca=" + file("empty.pem", "")}, nil, exitUsage, "no PEM certificate"},
		"a level of the log must be one":             {[]string{good, "--log-level=loud"}, nil, exitUsage, "--log-level"},
		"a format of the log must be one":            {[]string{good, "--log-format=xml"}, nil, exitUsage, "--log-format"},
		"outside of a cluster it wants a kubeconfig": {[]string{good, "--lister-kubeconfig=" + dir + "/none"}, nil, exitFailure, "preparing the API server"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := run(context.Background(), tc.args, tc.env, &stdout, &stderr)
			said := strings.TrimSpace(stderr.String())
			if code != tc.code || !strings.Contains(said, tc.want) {
				t.Errorf("got %d and %q, want %d and something about %q", code, said, tc.code, tc.want)
			}
			if last := said[strings.LastIndexByte(said, '\n')+1:]; !strings.HasPrefix(last, "roomscaler-adapter: ") {
				t.Errorf("the last line is %q", last)
			}
		})
	}
}
