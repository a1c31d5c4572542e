package broker_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/roomscaler/roomscaler/broker"
)

func TestNames(t *testing.T) {
	for _, c := range []struct {
		check func(string) error
		name  string
		ok    bool
	}{
		{broker.CheckPool, "default", true},
		{broker.CheckPool, "a-1", true},
		{broker.CheckPool, "", false},
		{broker.CheckPool, "A", false},
		{broker.CheckPool, "{x}", false},
		{broker.CheckPool, strings.Repeat("a", 64), false},
		{broker.CheckInstance, "janus-0", true},
		{broker.CheckInstance, "janus-0.eu", true},
		{broker.CheckInstance, "janus/0", false},
		{broker.CheckInstance, "", false},
		{broker.CheckRoom, "Müller & Söhne / 1", true},
		{broker.CheckRoom, "..", true},
		{broker.CheckRoom, "{\"a\":1}", true},
		{broker.CheckRoom, "", false},
		{broker.CheckRoom, "a\nb", false},
		{broker.CheckRoom, "a\x1b[31m", false},
		{broker.CheckRoom, "a\xff", false},
		{broker.CheckRoom, strings.Repeat("ä", 128), true},
		{broker.CheckRoom, strings.Repeat("ä", 128) + "x", false},
	} {
		err := c.check(c.name)
		var bad *broker.InvalidError
		if (err == nil) != c.ok || err != nil && (!errors.As(err, &bad) || bad.Field == "" || bad.Want == "") {
			t.Errorf("%q: %v", c.name, err)
		}
	}
}

func TestOrdinalOf(t *testing.T) {
	for name, want := range map[string]int{"janus-0": 0, "janus-17": 17, "eu1-janus-3": 3, "janus": -1, "janus-99999999999999999999": -1, "janus-100000": -1} {
		n, ok := broker.OrdinalOf(name)
		if ok != (want >= 0) || ok && n != want {
			t.Errorf("%s: %d, %v; want %d", name, n, ok, want)
		}
	}
}

func TestConfig_BadFields(t *testing.T) {
	good := func() broker.Config { return broker.Config{Pool: "p", Key: testKey} }
	for field, change := range map[string]func(*broker.Config){
		"pool":                 func(c *broker.Config) { c.Pool = "No Good" },
		"placement":            func(c *broker.Config) { c.Placement = "best" },
		"empty-when":           func(c *broker.Config) { c.EmptyWhen = "always" },
		"target":               func(c *broker.Config) { c.Placement = broker.Packed },
		"max-sessions":         func(c *broker.Config) { c.MaxSessions = -1 },
		"default-participants": func(c *broker.Config) { c.MaxSessions, c.DefaultParticipants = 5, 6 },
		"sweep-interval":       func(c *broker.Config) { c.SweepInterval = time.Millisecond },
		"instance-timeout":     func(c *broker.Config) { c.InstanceTimeout = -1 },
		"lost-after":           func(c *broker.Config) { c.LostAfter = time.Second },
		"room-ttl":             func(c *broker.Config) { c.RoomTTL = -1 },
		"room-ttl-draining":    func(c *broker.Config) { c.RoomTTLDraining = -1 },
		"room-key":             func(c *broker.Config) { c.Key = nil },
	} {
		cfg := good()
		change(&cfg)
		_, err := broker.NewService(cfg, newStore(), nil, nil, nil)
		var bad *broker.InvalidError
		if !errors.As(err, &bad) || bad.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := broker.NewService(good(), newStore(), nil, nil, nil); err != nil {
		t.Error(err)
	}
}
