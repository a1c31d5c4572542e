package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/spf13/pflag"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"roomscaler": main})
}

// TestScripts runs the program as users do.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			for _, name := range []string{"PORT", "PORT2", "PORT3"} {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					return err
				}
				_, port, _ := net.SplitHostPort(l.Addr().String())
				e.Setenv(name, port)
				l.Close()
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"get": get},
	})
}

// get asks for a URL until it answers with the status, and with a body that holds the text: get URL STATUS [TEXT].
func get(ts *testscript.TestScript, _ bool, args []string) {
	deadline := time.After(30 * time.Second)
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	last := "nothing"
	for {
		resp, err := http.Get(args[0]) //nolint:noctx // bounded by the deadline
		if err == nil {
			b, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			last = fmt.Sprintf("%d: %s", resp.StatusCode, b)
			if fmt.Sprint(resp.StatusCode) == args[1] && (len(args) < 3 || strings.Contains(string(b), args[2])) {
				return
			}
		} else {
			last = err.Error()
		}
		select {
		case <-ticks.C:
		case <-deadline:
			ts.Fatalf("%s answers %s", args[0], last)
		}
	}
}

func TestRun_BadInputIsOneLineWithTheRemedy(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const static = "--discover=static:janus-0=http://127.0.0.1:1/admin"
	empty, short := write("empty", "\n"), write("short", "x")
	cases := map[string]struct {
		args []string
		env  []string
		want string
	}{
		"no such command":              {[]string{"brocker"}, nil, `there is no command "brocker"; see roomscaler --help`},
		"an argument":                  {[]string{"broker", "x"}, nil, `takes no argument, but got "x"`},
		"no such flag":                 {[]string{"broker", "--stor=x"}, nil, "--stor: there is no such flag; see roomscaler broker --help"},
		"a flag without a value":       {[]string{"broker", "--store"}, nil, "--store: has no value; give one as --store=VALUE"},
		"no duration":                  {[]string{"broker", "--sweep-interval=5"}, nil, `--sweep-interval: "5" is not understood; give a duration such as 5s`},
		"no number":                    {[]string{"broker", "--target=many"}, nil, `--target: "many" is not understood; give a whole number`},
		"no number in the environment": {[]string{"broker"}, []string{"ROOMSCALER_TARGET=many"}, `ROOMSCALER_TARGET: "many" is not understood; give a whole number`},
		"no discover":                  {[]string{"broker"}, nil, "--discover: is missing; give static:NAME=URL,…, dns:HOST:PORT or kubernetes:NAMESPACE/SERVICE"},
		"no such finder":               {[]string{"broker", "--discover=consul:x"}, nil, `--discover: there is no finder "consul"; give static`},
		"a bad static list":            {[]string{"broker", "--discover=static:janus"}, nil, "--discover: entry 1 is no NAME=URL"},
		"a bad name":                   {[]string{"broker", "--discover=dns:janus"}, nil, "--discover: \"janus\" is no HOST:PORT"},
		"a bad service":                {[]string{"broker", "--discover=kubernetes:janus"}, nil, "--discover: \"janus\" is no NAMESPACE/SERVICE"},
		"a short connection age":       {[]string{"scaler", "--max-connection-age=1ms"}, nil, "--max-connection-age: is below 1s; give a duration"},
		"no such store":                {[]string{"broker", static, "--store=etcd://x"}, nil, "--store: is no URL of a store; give memory:// or redis://HOST:6379"},
		"a store in memory":            {[]string{"broker", static, "--store=memory://x"}, nil, "--store: a store in memory has no address; write memory://"},
		"a bad store":                  {[]string{"broker", static, "--store=redis+sentinel://:hunter2@h"}, nil, "--store: "},
		"no such backend":              {[]string{"broker", static, "--backend=srs"}, nil, `--backend: there is no "srs"; there is janus`},
		"a bad pool":                   {[]string{"broker", static, "--pool=Video"}, nil, "--pool: \"Video\" is no DNS label"},
		"placement":                    {[]string{"broker", static, "--placement=random"}, nil, "--placement: \"random\" is none of least-loaded, packed, round-robin"},
		"packed without a target":      {[]string{"broker", static, "--placement=packed"}, nil, "--target: is needed for placement packed"},
		"a negative target":            {[]string{"broker", static, "--target=-1"}, nil, "--target: is negative"},
		"empty-when":                   {[]string{"broker", static, "--empty-when=never"}, nil, "--empty-when: \"never\" is neither sessions nor rooms"},
		"max-sessions":                 {[]string{"broker", static, "--max-sessions=-1"}, nil, "--max-sessions: is negative"},
		"default-participants":         {[]string{"broker", static, "--default-participants=0"}, nil, "--default-participants: must be above zero"},
		"too many participants":        {[]string{"broker", static, "--default-participants=9", "--max-sessions=8"}, nil, "--default-participants: is above max-sessions"},
		"uncountable participants":     {[]string{"broker", static, "--default-participants=9223372036854775807"}, nil, "--default-participants: is above 100000"},
		"an endless sweep-interval":    {[]string{"broker", static, "--sweep-interval=2562047h"}, nil, "--sweep-interval: is above 1h"},
		"an endless instance-timeout":  {[]string{"broker", static, "--instance-timeout=2562047h"}, nil, "--instance-timeout: is above 1h"},
		"sweep-interval":               {[]string{"broker", static, "--sweep-interval=0s"}, nil, "--sweep-interval: must be above zero; give a duration"},
		"a short sweep-interval":       {[]string{"broker", static, "--sweep-interval=1ms"}, nil, "--sweep-interval: is below 50ms"},
		"instance-timeout":             {[]string{"broker", static, "--instance-timeout=-1s"}, nil, "--instance-timeout: must be above zero"},
		"lost-after":                   {[]string{"broker", static, "--lost-after=1s"}, nil, "--lost-after: is below two sweeps"},
		"room-ttl":                     {[]string{"broker", static, "--room-ttl=0s"}, nil, "--room-ttl: must be above zero"},
		"room-ttl-draining":            {[]string{"broker", static, "--room-ttl-draining=0s"}, nil, "--room-ttl-draining: must be above zero"},
		"no admin secret":              {[]string{"broker", static, "--janus-admin-secret-file=/nonexistent"}, nil, "--janus-admin-secret-file: open /nonexistent: no such file"},
		"an empty admin secret":        {[]string{"broker", static, "--janus-admin-secret-file=" + empty}, nil, "is empty"},
		"no ICE servers":               {[]string{"broker", static, "--ice-servers-file=/nonexistent"}, nil, "--ice-servers-file: open"},
		"ICE servers of another form":  {[]string{"broker", static, "--ice-servers-file=" + short}, nil, "is no JSON array such as"},
		"an ICE server without URLs":   {[]string{"broker", static, "--ice-servers-file=" + write("ice", "[{}]")}, nil, "has no urls"},
		"no token secret":              {[]string{"broker", static, "--janus-token-secret-file=/nonexistent"}, nil, "--janus-token-secret-file: open"},
		"a short token life":           {[]string{"broker", static, "--janus-token-secret-file=" + short, "--janus-token-ttl=1s"}, nil, "--janus-token-ttl: is below a minute"},
		"no admin key":                 {[]string{"broker", static, "--janus-admin-key-file=/nonexistent"}, nil, "--janus-admin-key-file: open"},
		"a short room key":             {[]string{"broker", static, "--room-key-file=" + short}, nil, "holds fewer than 16 bytes; fill it with openssl rand"},
		"url-ws":                       {[]string{"broker", static, "--url-ws=wss://{name}/"}, nil, "--url-ws: has the placeholder {name}; there are {instance}"},
		"url-http":                     {[]string{"broker", static, "--url-http=x"}, nil, "--url-http: is no URL; give one such as https://"},
		"listen without tokens":        {[]string{"broker", static, "--listen=:8080"}, nil, "--listen: :8080 may be reached from other machines, and there are no tokens; give --token-file, or listen on 127.0.0.1"},
		"serve without tokens":         {[]string{"serve", static, "--listen=0.0.0.0:0"}, nil, "--listen: 0.0.0.0:0 may be reached"},
		"a bad listen":                 {[]string{"broker", static, "--listen=8080"}, nil, "--listen: \"8080\" is no HOST:PORT; give one such as"},
		"a bad metrics-listen":         {[]string{"broker", static, "--listen=127.0.0.1:0", "--metrics-listen=9090"}, nil, "--metrics-listen: \"9090\" is no HOST:PORT"},
		"no token file":                {[]string{"broker", static, "--token-file=/nonexistent"}, nil, "--token-file: reading the token file: open /nonexistent"},
		"a bad token file":             {[]string{"broker", static, "--token-file=" + short}, nil, "has no token; write one line per token"},
		"a certificate without key":    {[]string{"broker", static, "--tls-cert=" + short}, nil, "--tls-key: is missing"},
		"a key without certificate":    {[]string{"broker", static, "--tls-key=" + short}, nil, "--tls-cert: is missing"},
		"a bad certificate":            {[]string{"broker", static, "--tls-cert=" + short, "--tls-key=" + short}, nil, "--tls-cert and --tls-key: tls:"},
		"log-format":                   {[]string{"broker", static, "--log-format=xml"}, nil, "--log-format: \"xml\" is neither json nor text"},
		"log-level":                    {[]string{"scaler", "--log-level=loud"}, nil, "--log-level: \"loud\" is none of debug, info, warn, error"},
		"shutdown-delay":               {[]string{"broker", static, "--shutdown-delay=-1s"}, nil, "--shutdown-delay: is negative"},
		"broker":                       {[]string{"scaler", "--broker=localhost:8080"}, nil, "--broker: give one such as http://127.0.0.1:8080"},
		"no broker token":              {[]string{"scaler", "--broker-token-file=/nonexistent"}, nil, "--broker-token-file: open"},
		"a bad broker CA":              {[]string{"scaler", "--broker-ca=" + short}, nil, "holds no PEM certificate"},
		"half a broker certificate":    {[]string{"scaler", "--broker-cert=" + short}, nil, "--broker-cert: needs --broker-key"},
		"a bad scaler listen":          {[]string{"scaler", "--listen=6000"}, nil, "--listen: \"6000\" is no HOST:PORT"},
		"a bad scaler-listen":          {[]string{"serve", static, "--listen=127.0.0.1:0", "--metrics-listen=off", "--scaler-listen=x"}, nil, "--scaler-listen: \"x\" is no HOST:PORT"},
		"scaler-tls":                   {[]string{"serve", static, "--scaler-tls-key=" + short}, nil, "--scaler-tls-cert: is missing"},
		"no configuration":             {[]string{"broker", "--config=/nonexistent"}, nil, "--config: open /nonexistent"},
		"an unknown key":               {[]string{"broker", "--config=" + write("a", "stor: x\n")}, nil, `line 1: there is no "stor" here; the keys are flags' names`},
		"an unknown key of a pool":     {[]string{"broker", "--config=" + write("b", "pools:\n- pool: a\n  listen: x\n")}, nil, `line 3: there is no "listen" here`},
		"a wrong value":                {[]string{"broker", "--config=" + write("c", "target: many\n")}, nil, `line 1: target: "many" is not understood; give a whole number`},
		"a pool without a name":        {[]string{"broker", "--config=" + write("d", "pools:\n- target: 3\n")}, nil, "pool 1 has no name of its own"},
		"a pool twice":                 {[]string{"broker", "--config=" + write("e", "pools:\n- pool: a\n- pool: a\n")}, nil, "pool 2 has no name of its own"},
		"no pool":                      {[]string{"broker", "--config=" + write("f", "pools: []\n")}, nil, "pools is empty"},
		"a list for a value":           {[]string{"broker", "--config=" + write("g", "target: [1]\n")}, nil, "target is no single value"},
		"no YAML":                      {[]string{"broker", "--config=" + write("h", "a: [\n")}, nil, "is not understood"},
		"a bad flag of one pool":       {[]string{"broker", "--config=" + write("i", "pools:\n- {pool: a, discover: 'static:a=http://h'}\n- {pool: b}\n")}, nil, "pool b: --discover: is missing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // should it run after all, it ends at once
			var stdout, stderr bytes.Buffer
			code := run(ctx, tc.args, tc.env, &stdout, &stderr)
			lines := strings.Split(strings.TrimSuffix(stderr.String(), "\n"), "\n")
			last := lines[len(lines)-1]
			if code != exitUsage || stdout.Len() != 0 || !strings.HasPrefix(last, "roomscaler: ") || !strings.Contains(last, tc.want) || strings.Contains(last, "hunter2") {
				t.Errorf("got %d, %q", code, stderr.String())
			}
			for _, line := range lines[:len(lines)-1] {
				if !strings.HasPrefix(line, `{"time"`) { // a warning of the log
					t.Errorf("more than one line: %q", line)
				}
			}
		})
	}
}

func TestRun_NoFlagTakesAnything(t *testing.T) {
	required := map[string][]string{
		"broker": {"--discover=static:janus-0=http://127.0.0.1:1/admin", "--listen=127.0.0.1:0", "--metrics-listen=off"},
		"scaler": {"--listen=127.0.0.1:0", "--metrics-listen=off"},
	}
	required["serve"] = append(required["broker"], "--scaler-listen=127.0.0.1:0")
	for _, c := range rootCommand(nil).Commands() {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" {
				return
			}
			t.Run(c.Name()+" --"+f.Name, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				cancel() // should it run after all, it ends at once
				var stdout, stderr bytes.Buffer
				args := append(append([]string{c.Name()}, required[c.Name()]...), "--"+f.Name+"=no such thing")
				code := run(ctx, args, nil, &stdout, &stderr)
				last := stderr.String()[strings.LastIndex(strings.TrimSuffix(stderr.String(), "\n"), "\n")+1:]
				want, said := "--"+f.Name, last
				switch {
				case strings.Contains(f.Name, "tls-"):
					want = "tls-" // its partner is missing
				case c.Name() == "drainhook" && code == exitFailure:
					said = stderr.String() // a file that cannot be read does not end the hook
				}
				if code == 0 || code == exitFailure && c.Name() != "drainhook" || !strings.Contains(said, want) || len(last) > 400 {
					t.Errorf("got %d, %q", code, stderr.String())
				}
			})
		})
	}
}

func TestSetFromEnv_AFlagGoesBeforeTheEnvironmentAndThatBeforeTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte("pool: file\nplacement: file\nbackend: file\npools:\n- {pool: a, target: 3}\n- {pool: b, placement: own}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := brokerCommand()
	if err := c.ParseFlags([]string{"--backend=flag"}); err != nil {
		t.Fatal(err)
	}
	if err := setFromEnv(c.Flags(), []string{"ROOMSCALER_BACKEND=env", "ROOMSCALER_PLACEMENT=env", "ROOMSCALER_ROOM_TTL=3m"}); err != nil {
		t.Fatal(err)
	}
	var base poolOptions
	base.backend, base.placement = c.Flag("backend").Value.String(), c.Flag("placement").Value.String()
	pools, err := (&configuration{path: path, flags: c.Flags(), pool: &base}).read()
	if err != nil {
		t.Fatal(err)
	}
	if c.Flag("room-ttl").Value.String() != "3m0s" || len(pools) != 2 {
		t.Fatalf("room-ttl is %s, %d pools", c.Flag("room-ttl").Value, len(pools))
	}
	a, b := pools[0], pools[1]
	if a.pool != "a" || a.backend != "flag" || a.placement != "env" || a.target != 3 || b.pool != "b" || b.placement != "own" || b.target != 0 {
		t.Errorf("got %+v and %+v", a, b)
	}
}
