package main

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roomscaler/roomscaler/test/procs"
)

func TestRun(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		want string // in the one line on stderr
	}{
		{"a bad value is named with its remedy", []string{"demo", "--rooms", "3"}, "--rooms: 3 is out of range; give 12 to 400"},
		{"a value that is no number too", []string{"demo", "--seed", "x"}, `"--seed"`},
		{"an unknown flag is named", []string{"demo", "--seeds", "1"}, "--seeds"},
		{"an unknown subcommand is named", []string{"dance"}, `"dance"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := run(t.Context(), tt.args, &out, &errs); code != exitError {
				t.Errorf("exit code %d, want %d", code, exitError)
			}
			if got := errs.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, tt.want) {
				t.Errorf("stderr: got %q, want one line with %s", got, tt.want)
			}
			if out.Len() > 0 {
				t.Errorf("stdout: got %q", out.String())
			}
		})
	}
}

func TestRun_Simjanus(t *testing.T) {
	var ports [2]string
	for i := range ports {
		n, err := procs.FreePort("127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		ports[i] = strconv.Itoa(n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	var errs bytes.Buffer
	go func() {
		code <- run(ctx, []string{"simjanus", "--admin-port", ports[0], "--http-port", ports[1]}, &bytes.Buffer{}, &errs)
	}()
	for _, url := range []string{"http://127.0.0.1:" + ports[0] + "/admin/info", "http://127.0.0.1:" + ports[1] + "/janus/info"} {
		get(t, url)
	}
	cancel()
	if c := <-code; c != 0 {
		t.Errorf("exit code %d: %s", c, errs.String())
	}
}

// get asks until there is an answer.
func get(t *testing.T, url string) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Errorf("%s: got %s", url, resp.Status)
			}
			return
		}
		select {
		case <-deadline.C:
			t.Fatal(err)
		case <-tick.C:
		}
	}
}
