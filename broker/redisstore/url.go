package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/roomscaler/roomscaler/broker"
)

// The forms of a store's URL. A rediss+… form speaks TLS to all servers, Sentinels included.
const (
	formOne      = "redis"
	formSentinel = "redis+sentinel"
	formCluster  = "redis+cluster"
)

// Open returns a store by its URL:
//
//	redis://[user:password@]host[:6379][/db]
//	redis+sentinel://[user:password@]host[:26379],host…[/db]?master=NAME
//	redis+cluster://[user:password@]host[:6379],host…
//
// and the same with rediss for TLS, where ?ca=FILE names the authorities to trust (PEM; default the
// system's). User and password are percent-encoded; those of the Sentinels themselves, if they want any, are
// ?sentinel_user= and ?sentinel_password=. Open connects to nothing. Errors are one line, of *broker.InvalidError, and
// hold no password.
func Open(rawURL string, o Options) (*Store, error) {
	a, err := parseAddress(rawURL)
	if err != nil {
		return nil, err
	}
	if o.Timeout < 0 {
		return nil, &broker.InvalidError{Field: "Timeout", Want: "is negative; give a time such as 1s"}
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	client := a.client(o.Timeout)
	s, err := New(client, o)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return s, nil
}

// address is a store's URL, taken apart.
type address struct {
	form                           string
	user, password                 string
	hosts                          []string
	db                             int
	master                         string
	sentinelUser, sentinelPassword string
	tls                            *tls.Config
}

// client sends a step at most twice to one server: a connection that has gone stale is replaced
// once, and what is down is reported soon.
func (a address) client(timeout time.Duration) redis.UniversalClient {
	o := &redis.UniversalOptions{
		Addrs: a.hosts, DB: a.db, Username: a.user, Password: a.password,
		MasterName: a.master, SentinelUsername: a.sentinelUser, SentinelPassword: a.sentinelPassword,
		IsClusterMode: a.form == formCluster,
		TLSConfig:     a.tls,
		Protocol:      2, DisableIdentity: true, // no more commands than the ACL has to allow
		DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout, PoolTimeout: timeout,
		ContextTimeoutEnabled: true,
		MaxRetries:            1, DialerRetries: 1,
	}
	return redis.NewUniversalClient(o)
}

func invalid(format string, args ...any) error {
	return &broker.InvalidError{Field: "store", Want: fmt.Sprintf(format, args...)}
}

// parseAddress reads a URL by hand: package net/url takes one host alone, and repeats the
// whole URL with its password in its errors.
func parseAddress(raw string) (address, error) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return address{}, invalid("is no URL; write redis://HOST:6379")
	}
	secure := strings.HasPrefix(scheme, "rediss")
	a := address{form: "redis" + strings.TrimPrefix(strings.TrimPrefix(scheme, "redis"), "s")}
	if !strings.HasPrefix(scheme, "redis") || a.form != formOne && a.form != formSentinel && a.form != formCluster {
		return address{}, invalid("the scheme is not known; use redis, redis+sentinel or redis+cluster, or rediss… for TLS")
	}
	if strings.LastIndex(rest, "@") > strings.IndexAny(rest, "/?") && strings.ContainsAny(rest, "/?") {
		return address{}, invalid("user, password and values hold one of @ / ?; percent-encode it there")
	}
	rest, query, _ := strings.Cut(rest, "?")
	rest, path, _ := strings.Cut(rest, "/")
	if i := strings.LastIndex(rest, "@"); i >= 0 {
		if err := a.setUser(rest[:i]); err != nil {
			return address{}, err
		}
		rest = rest[i+1:]
	}
	for _, step := range []func() error{
		func() error { return a.setHosts(rest) },
		func() error { return a.setDB(path) },
		func() error { return a.setQuery(query, secure) },
	} {
		if err := step(); err != nil {
			return address{}, err
		}
	}
	return a, nil
}

func (a *address) setUser(s string) error {
	user, password, both := strings.Cut(s, ":")
	var err error
	if a.user, err = url.PathUnescape(user); err == nil {
		a.password, err = url.PathUnescape(password)
	}
	switch {
	case err != nil:
		return invalid("the user or password has a %% that encodes nothing; write %%25 for it")
	case !both && user != "":
		return invalid("there is a user without a password; write user:password@, or :password@ for the default user")
	}
	return nil
}

func (a *address) setHosts(s string) error {
	port := "6379"
	if a.form == formSentinel {
		port = "26379"
	}
	for h := range strings.SplitSeq(s, ",") {
		if h == "" {
			return invalid("a host is missing; write HOST:%s after the scheme", port)
		}
		if !strings.Contains(h, ":") || strings.HasPrefix(h, "[") && strings.HasSuffix(h, "]") {
			h += ":" + port
		}
		name, number, err := net.SplitHostPort(h)
		if err != nil || name == "" || strings.ContainsAny(name, "# \t") {
			return invalid("host %q is none; write HOST:%s, an IPv6 address in brackets", h, port)
		}
		if n, err := strconv.Atoi(number); err != nil || n < 1 || n > 65535 {
			return invalid("port %q of host %s is none; use 1-65535", number, name)
		}
		a.hosts = append(a.hosts, h)
	}
	if a.form == formOne && len(a.hosts) > 1 {
		return invalid("there are %d hosts; use redis+sentinel or redis+cluster as scheme for several", len(a.hosts))
	}
	return nil
}

func (a *address) setDB(s string) error {
	if s == "" {
		return nil
	}
	n, err := strconv.Atoi(s)
	switch {
	case err != nil || n < 0:
		return invalid("database %q is none; write its number after the host, such as /0", s)
	case a.form == formCluster && n != 0:
		return invalid("a cluster has database 0 alone; leave /%d out", n)
	}
	a.db = n
	return nil
}

func (a *address) setQuery(s string, secure bool) error {
	values, err := url.ParseQuery(s)
	if err != nil {
		return invalid("what follows the ? is no key=value&…; percent-encode the values")
	}
	ca := ""
	for key, v := range values {
		target, forms := (*string)(nil), formSentinel
		switch key {
		case "master":
			target = &a.master
		case "sentinel_user":
			target = &a.sentinelUser
		case "sentinel_password":
			target = &a.sentinelPassword
		case "ca":
			target, forms = &ca, a.form
		default:
			return invalid("?%s= is not known; use master, sentinel_user, sentinel_password, ca", key)
		}
		if forms != a.form {
			return invalid("?%s= belongs to redis+sentinel alone; leave it out", key)
		}
		if len(v) > 1 || v[0] == "" {
			return invalid("?%s= is empty or there twice; give it one value", key)
		}
		*target = v[0]
	}
	switch {
	case a.form == formSentinel && a.master == "":
		return invalid("?master= is missing; give the name under which the Sentinels know the master")
	case ca != "" && !secure:
		return invalid("?ca= needs TLS; write rediss for redis")
	case secure:
		return a.setTLS(ca)
	}
	return nil
}

func (a *address) setTLS(file string) error {
	a.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	if file == "" {
		return nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return invalid("?ca= cannot be read: %v", err)
	}
	a.tls.RootCAs = x509.NewCertPool()
	if !a.tls.RootCAs.AppendCertsFromPEM(pem) {
		return invalid("?ca=%s has no certificate; give a PEM file", file)
	}
	return nil
}
