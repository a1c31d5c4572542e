package janus_test

import (
	"errors"
	"testing"
	"time"

	"github.com/roomscaler/roomscaler/broker/janus"
	"github.com/roomscaler/roomscaler/test/januscli"
	"github.com/roomscaler/roomscaler/test/procs"
)

func TestSignedToken(t *testing.T) {
	const secret = "token secret"
	j, err := procs.StartJanus(t.Context(), procs.JanusOptions{TokenSecret: secret})
	procs.Need(t, err)
	t.Cleanup(j.Kill)
	for _, c := range []struct {
		name, token string
		ok          bool
	}{
		{"its client is let in", janus.SignedToken(secret, time.Now().Add(time.Minute)), true},
		{"not without one", "", false},
		{"not with one of another secret", janus.SignedToken("other", time.Now().Add(time.Minute)), false},
		{"not with one whose time is over", janus.SignedToken(secret, time.Now().Add(-time.Minute)), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := januscli.Open(t.Context(), j.HTTPURL(), januscli.Options{Token: c.token})
			if c.ok {
				if err != nil {
					t.Fatal(err)
				}
				_ = s.Close(t.Context())
				return
			}
			var refused *januscli.Error
			if !errors.As(err, &refused) || refused.Code != 403 {
				t.Errorf("%v; want Janus's 403", err)
			}
		})
	}
}
