package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func TestConfiguration_Watch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	put(t, path, []byte("target: 3\nplacement: packed\nlisten: 127.0.0.1:1\n"))
	synctest.Test(t, func(t *testing.T) {
		fresh := func() (*pflag.FlagSet, *poolOptions) {
			o, f := &brokerOptions{}, pflag.NewFlagSet("", pflag.ContinueOnError)
			o.flags(f)
			return f, &o.poolOptions
		}
		flags, base := fresh()
		if err := flags.Parse([]string{"--placement=round-robin"}); err != nil {
			t.Fatal(err)
		}
		c := &configuration{path: path, flags: flags, pool: base, fresh: fresh}
		list, err := c.read()
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		var got []string
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		var refuse error
		go func() {
			defer close(done)
			c.watch(ctx, slog.New(slog.NewTextHandler(&log, nil)), func(list []*poolOptions) error {
				for _, o := range list {
					got = append(got, fmt.Sprint(o.pool, " ", o.target, " ", o.placement))
				}
				return refuse
			})
		}()
		change := func(content string) {
			put(t, path, []byte(content))
			time.Sleep(3 * configEvery) // read twice alike, the first time perhaps half written
			synctest.Wait()
		}
		if list[0].target != 3 || list[0].placement != "round-robin" {
			t.Errorf("at first: %+v", *list[0])
		}
		time.Sleep(10 * configEvery)
		// The target goes back to its default, what a flag says stays.
		change("pools:\n- {pool: a, target: 5}\n- {pool: b}\n")
		// What is wrong changes nothing.
		change("pools:\n- {pool: a, target: many}\n")
		// What is refused is tried once.
		refuse = errors.New("no store")
		change("target: 7\n")
		time.Sleep(10 * configEvery)
		cancel()
		<-done
		want := []string{"a 5 round-robin", "b 0 round-robin", "default 7 round-robin"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for _, want := range []string{"takes effect with a restart only\" path=" + path + " flag=listen", "target: \\\"many\\\"", "no store"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log does not have %s:\n%s", want, log.String())
			}
		}
		if n := strings.Count(log.String(), "level=ERROR"); n != 2 {
			t.Errorf("%d errors in the log:\n%s", n, log.String())
		}
	})
}
