package redisstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/redisstore"
)

const hidden = "hidden-word"

func TestOpen_BadURL(t *testing.T) {
	dir := t.TempDir()
	empty := write(t, dir, "empty.pem", nil)
	for _, c := range []struct{ url, want string }{
		{"", "is no URL"},
		{"localhost:6379", "is no URL"},
		{"http://h:6379", "scheme"},
		{"redis+x://h:6379", "scheme"},
		{"redisss://h", "scheme"},
		{"redis://", "a host is missing"},
		{"redis://:" + hidden + "@", "a host is missing"},
		{"redis://h:port", `port "port" of host h`},
		{"redis://h:0", `port "0"`},
		{"redis://h:70000", `port "70000"`},
		{"redis://::1", "brackets"},
		{"redis://a,b", "2 hosts"},
		{"redis://user@h", "user without a password"},
		{"redis://user:%zz" + hidden + "@h", "write %25"},
		{"redis://user:" + hidden + "/x@h:6379", "percent-encode"},
		{"redis://user:" + hidden + "?x@h:6379", "percent-encode"},
		{"redis://h/x", `database "x"`},
		{"redis://h/-1", `database "-1"`},
		{"redis+cluster://a,b/1", "database 0 alone"},
		{"redis+sentinel://a,b", "?master= is missing"},
		{"redis+sentinel://a?master=", "?master= is empty"},
		{"redis+sentinel://a?master=x&master=y", "twice"},
		{"redis://a?master=x", "redis+sentinel alone"},
		{"redis://a?sentinel_password=" + hidden, "redis+sentinel alone"},
		{"redis://a?db=1", "?db= is not known"},
		{"redis://a?ca=/tmp/x", "write rediss"},
		{"rediss://a?ca=" + dir + "/none.pem", "cannot be read"},
		{"rediss://a?ca=" + empty, "no certificate"},
		{"redis://a?%zz=1", "percent-encode"},
	} {
		t.Run(c.url, func(t *testing.T) {
			s, err := redisstore.Open(c.url, redisstore.Options{Pool: "media"})
			var invalid *broker.InvalidError
			if s != nil || !errors.As(err, &invalid) {
				t.Fatalf("got %v, %v; want an InvalidError", s, err)
			}
			contains(t, err, "store: ", c.want)
			if strings.Contains(err.Error(), hidden) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q: it tells the password or has several lines", err)
			}
		})
	}
}

func TestOpen_GoodURL(t *testing.T) {
	for _, url := range []string{
		"redis://h", "redis://h:1", "redis://[::1]", "redis://[::1]:6379/3", "redis://:p@h", "redis://u:p%40%2F@h/0", "rediss://u:@h",
		"redis+sentinel://:p@a,b:1,c/2?master=m&sentinel_user=u&sentinel_password=p", "rediss+sentinel://a?master=m",
		"redis+cluster://a:1,b:2,c:3", "rediss+cluster://a/0", "redis+cluster://a/",
	} {
		t.Run(url, func(t *testing.T) { openURL(t, url, redisstore.Options{Pool: "media"}) })
	}
}

func TestOpen_BadOptions(t *testing.T) {
	for _, o := range []redisstore.Options{{}, {Pool: "Not a label"}, {Pool: "media", StepCap: -1}, {Pool: "media", Timeout: -1}} {
		if _, err := redisstore.Open("redis://h", o); !errors.As(err, new(*broker.InvalidError)) {
			t.Errorf("%+v: got %v, want an InvalidError", o, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add("redis://u:p@h:6379/0?ca=x")
	f.Add("redis+sentinel://:p@a,b:1/2?master=m")
	f.Add("rediss+cluster://[::1]:1,b")
	f.Fuzz(func(t *testing.T, url string) {
		s, err := redisstore.Open(url, redisstore.Options{Pool: "media"})
		if err == nil {
			s.Close()
		} else if strings.ContainsAny(err.Error(), "\n\r") {
			t.Errorf("%q: got an error of several lines: %q", url, err)
		}
	})
}
