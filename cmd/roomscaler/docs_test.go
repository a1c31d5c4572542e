package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

var updateDocs = flag.Bool("update-docs", false, "write the generated part of docs/config.md")

// The flags in docs/config.md are those of the program.
func TestDocs_Config(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "config.md")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const end = "<!-- end of flags -->"
	head, rest, ok := strings.Cut(string(b), "-update-docs` -->\n")
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("docs/config.md has lost the marks around its flags")
	}
	want := head + "-update-docs` -->\n" + flagTables() + end + tail
	if *updateDocs {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(want, string(b)); d != "" {
		t.Errorf("docs/config.md is out of date; run this test with -update-docs (-want +got):\n%s", d)
	}
}

// flagTables is one table for each subcommand, in Markdown.
func flagTables() string {
	var b strings.Builder
	cell := strings.NewReplacer("|", `\|`, "\n", " ")
	for _, c := range rootCommand(nil).Commands() {
		if !c.HasAvailableLocalFlags() || c.Hidden || c.Name() == "help" {
			continue
		}
		rows := 0
		var table strings.Builder
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" || f.Hidden {
				return
			}
			value := "`" + f.DefValue + "`"
			switch {
			case f.Name == "instance" && c.Name() == "drainhook":
				value = "the host's name"
			case f.DefValue == "":
				value = ""
			}
			fmt.Fprintf(&table, "| `--%s` | %s | %s |\n", f.Name, value, cell.Replace(f.Usage))
			rows++
		})
		if rows > 0 {
			fmt.Fprintf(&b, "\n## roomscaler %s\n\n%s\n\n| flag | default | meaning |\n|---|---|---|\n%s", c.Name(), c.Short+".", table.String())
		}
	}
	return b.String() + "\n"
}
