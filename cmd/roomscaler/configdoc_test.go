package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

const configIntro = `# Flags

Generated from the code by ` + "`go test ./cmd/roomscaler -run TestConfigDocument -update`" + `.

Each flag can be given in the environment as well: ` + "`--sweep-interval` as `ROOMSCALER_SWEEP_INTERVAL`" + `. A flag goes
before the environment, and that before the file of ` + "`--config`" + ` (broker and serve), whose keys are the flags' names:

` + "```yaml" + `
store: redis://redis:6379
token-file: /etc/roomscaler/tokens.yaml
pools:                    # without it there is one pool, as the flags say
  - pool: video
    discover: dns:janus.video.svc.cluster.local:7088
  - pool: audio
    discover: dns:janus.audio.svc.cluster.local:7088
    placement: packed
    target: 40
` + "```" + `

A pool's own keys go before everything outside of it. The file is read again when it changes: pools come, go and change
without a restart, and a pool that stays the same is not disturbed. Other changes are logged and wait for
a restart. What is wrong in it changes nothing. Files of tokens and certificates are read again too.
`

func TestConfigDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString(configIntro)
	ofPool := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(poolOptions).flags(ofPool)
	for _, c := range rootCommand(nil).Commands() {
		if !c.LocalFlags().HasFlags() {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n| flag | default | of a pool | meaning |\n|---|---|---|---|\n", c.Name(), c.Short)
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			value, mine := f.DefValue, ""
			switch {
			case f.Name == "help":
				return
			case f.Name == "instance":
				value = "the host's name"
			case value != "":
				value = "`" + value + "`"
			}
			if ofPool.Lookup(f.Name) != nil && c.Flags().Lookup("config") != nil {
				mine = "yes"
			}
			fmt.Fprintf(&b, "| `--%s` | %s | %s | %s |\n", f.Name, value, mine, strings.ReplaceAll(f.Usage, "|", "\\|"))
		})
	}
	path := filepath.Join("..", "..", "docs", "config.md")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(got)); diff != "" {
		t.Errorf("docs/config.md has drifted; run with -update (-code +document):\n%s", diff)
	}
}
