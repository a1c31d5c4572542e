package procs_test

import (
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/roomscaler/roomscaler/test/procs"
)

func TestJanus(t *testing.T) {
	j, err := procs.StartJanus(t.Context(), procs.JanusOptions{})
	procs.Need(t, err)
	defer j.Kill()

	t.Run("a restart with its options stands at the same address", func(t *testing.T) {
		j.Kill()
		if _, err := http.Get(j.HTTPURL() + "/info"); err == nil {
			t.Fatal("a killed Janus still answers")
		}
		again, err := procs.StartJanus(t.Context(), j.Options())
		if err != nil {
			t.Fatal(err)
		}
		defer again.Kill()
		if again.AdminURL() != j.AdminURL() || again.Pid() == j.Pid() {
			t.Errorf("restarted at %s as %d; it was at %s as %d", again.AdminURL(), again.Pid(), j.AdminURL(), j.Pid())
		}
	})
	t.Run("a stop ends it by itself and takes its folder away", func(t *testing.T) {
		j, err := procs.StartJanus(t.Context(), procs.JanusOptions{AdminOff: true})
		if err != nil {
			t.Fatal(err)
		}
		if !j.Stop(30 * time.Second) {
			t.Error("it had to be killed")
		}
		if _, err := os.Stat(j.Options().Dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("its folder is still there: %v", err)
		}
	})
	t.Run("a taken admin port is an error at once", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		j, err := procs.StartJanus(t.Context(), procs.JanusOptions{AdminPort: l.Addr().(*net.TCPAddr).Port})
		if err == nil {
			j.Kill()
			t.Fatal("it started")
		}
	})
}

func TestRedis(t *testing.T) {
	r, err := procs.StartRedis(t.Context(), procs.RedisOptions{Snapshot: true, Dir: t.TempDir()})
	procs.Need(t, err)
	defer r.Kill()
	say := func(command string) string {
		t.Helper()
		c, err := net.Dial("tcp", r.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte(command + "\r\n")); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 100)
		n, err := c.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b[:n]))
	}
	if got, want := say("SET k v"), "+OK"; got != want {
		t.Fatalf("SET answered %q, want %q", got, want)
	}
	if !r.Stop(30 * time.Second) {
		t.Fatal("it had to be killed")
	}
	r, err = procs.StartRedis(t.Context(), r.Options())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Kill()
	if got, want := say("GET k"), "$1\r\nv"; got != want {
		t.Errorf("after a restart from its snapshot GET answered %q, want %q", got, want)
	}
}

type fakeTB struct{ got string }

func (*fakeTB) Helper()        {}
func (f *fakeTB) Skip(...any)  { f.got = "skip" }
func (f *fakeTB) Fatal(...any) { f.got = "fatal" }

func TestNeed(t *testing.T) {
	for _, c := range []struct {
		name, ci string
		err      error
		want     string
	}{
		{"no error goes on", "", nil, ""},
		{"not installed skips", "", procs.ErrNotInstalled, "skip"},
		{"not installed fails under CI", "1", procs.ErrNotInstalled, "fatal"},
		{"another error fails", "", errors.New("x"), "fatal"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("CI", c.ci)
			var f fakeTB
			procs.Need(&f, c.err)
			if f.got != c.want {
				t.Errorf("got %q, want %q", f.got, c.want)
			}
		})
	}
}
