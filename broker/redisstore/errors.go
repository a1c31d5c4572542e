package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/roomscaler/roomscaler/broker"
)

// refusal returns the error of an answer's code, nil for one that is none. "seal" and "noinfo"
// have more to tell and are read elsewhere.
func refusal(code string) error {
	switch code {
	case "lost":
		return broker.ErrStoreLost
	case "term":
		return broker.ErrTerm
	case "rebuilding":
		return broker.ErrRebuilding
	case "stale":
		return broker.ErrStale
	case "noroom":
		return broker.ErrRoomNotFound
	case "noinstance":
		return broker.ErrInstanceNotFound
	case "nocapacity":
		return broker.ErrNoCapacity
	case "released":
		return broker.ErrReleased
	case "version":
		return broker.ErrVersion
	}
	return nil
}

// remedies belong to answers of Redis that last until somebody does something.
var remedies = []struct{ mark, remedy string }{
	{"WRONGPASS", "give the right user and password in the store's URL"},
	{"NOAUTH", "give a user and password in the store's URL"},
	{"NOPERM", "allow the user the pool's keys and commands (ACL SETUSER)"},
	{"can't run this command", "allow the user the pool's commands (ACL SETUSER)"},
	{"can't access at least one of the keys", "allow the user the pool's keys (ACL SETUSER)"},
	{"NOREPLICAS", "the master has too few replicas; see min-replicas-to-write"},
	{"OOM", "raise maxmemory"},
	{"MISCONF", "Redis cannot write its snapshot; see its log"},
	{"CLUSTERDOWN", "a part of the cluster is down"},
	{"MOVED ", "this server is part of a cluster; write redis+cluster in the store's URL"},
	{"cluster support disabled", "this server is no cluster; write redis in the store's URL"},
	{"TRYAGAIN", "the pool's slot is being moved"},
	{"READONLY", "a replica answered; the fail-over may not be over"},
}

// unavailable says that no answer came. The causes of package redis stay behind: what
// they mean is all that a caller can use. A context's end is kept.
func unavailable(doing string, err error) error {
	text := err.Error()
	for _, r := range remedies {
		if strings.Contains(text, r.mark) {
			return fmt.Errorf("%s: %w: %s (%s)", doing, broker.ErrStoreUnavailable, text, r.remedy)
		}
	}
	for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, end) {
			return fmt.Errorf("%s: %w: %w", doing, broker.ErrStoreUnavailable, end)
		}
	}
	return fmt.Errorf("%s: %w: %s", doing, broker.ErrStoreUnavailable, text)
}

// noInfo says that the server does not tell its history.
func noInfo(doing, why string) error {
	return fmt.Errorf("%s: %w: INFO replication: %s (allow it: ACL SETUSER <user> +info)", doing, broker.ErrStoreUnavailable, why)
}

// unreadable says that what the store holds or answered is not of this package's form.
func unreadable(doing, what string) error {
	return fmt.Errorf("%s: %w: %s is of another form; does another version use this pool?", doing, broker.ErrStoreUnavailable, what)
}
