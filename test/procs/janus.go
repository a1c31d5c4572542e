package procs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// JanusOptions say how a Janus is set up. The zero value is good for a test.
type JanusOptions struct {
	Name string // shown as server-name; default "janus"
	IP   string // of all its listeners; default 127.0.0.1. Janus takes only an address that an interface has, so no other of 127.0.0.0/8
	Dir  string // of its configuration; default a new folder that goes when it ends

	// The ports of its listeners; 0 = any that is free.
	AdminPort, HTTPPort, WSPort int

	AdminSecret string // default "adminsecret"
	AdminKey    string // of the videoroom; "" = none is configured
	APISecret   string // "" = none
	TokenSecret string // token_auth with this token_auth_secret; "" = no token is wanted
	StringIDs   bool   // rooms and participants have strings as ids
	AdminOff    bool   // no admin API
	NoVideoroom bool

	SessionTimeout int    // seconds; default 60
	EventLoops     int    // 0 = a thread for each handle
	RTPPorts       string // default "20000-40000"
	ICEInterface   string // of its candidates; "" = all

	// Ready says what to wait for; default ReadyAdmin, or ReadyHTTP with AdminOff.
	Ready Ready

	temp bool // Dir goes when the process ends
}

// Ready says when a Janus counts as started.
type Ready string

// The signs of a start.
const (
	ReadyAdmin Ready = "admin" // its admin API answers
	ReadyHTTP  Ready = "http"  // its Janus API answers over HTTP
	ReadyWS    Ready = "ws"    // it listens for WebSockets
)

// Janus is a running Janus.
type Janus struct {
	*Process
	o JanusOptions
}

// StartJanus starts a Janus and waits until it answers. The context bounds the start alone. An error wraps
// ErrNotInstalled where there is no Janus.
func StartJanus(ctx context.Context, o JanusOptions) (*Janus, error) {
	program, err := find("janus", "janus")
	if err != nil {
		return nil, err
	}
	o = o.withDefaults()
	// A free port may be taken by somebody else before Janus has it; Janus then runs on without that listener.
	var errs []error
	for range 3 {
		j, err := startJanus(ctx, program, o)
		if err == nil {
			return j, nil
		}
		errs = append(errs, err)
		if !errors.Is(err, errPortTaken) || (o.AdminPort != 0 && o.HTTPPort != 0 && o.WSPort != 0) {
			break
		}
	}
	return nil, errors.Join(errs...)
}

func startJanus(ctx context.Context, program string, o JanusOptions) (*Janus, error) {
	if err := fillPorts(o.IP, &o.AdminPort, &o.HTTPPort, &o.WSPort); err != nil {
		return nil, err
	}
	if o.Dir == "" {
		dir, err := os.MkdirTemp("", "janus-")
		if err != nil {
			return nil, fmt.Errorf("make a folder for Janus: %w", err)
		}
		o.Dir, o.temp = dir, true
	}
	cleanup := func() {
		if o.temp {
			os.RemoveAll(o.Dir)
		}
	}
	if err := o.writeConfig(); err != nil {
		cleanup()
		return nil, err
	}
	p, err := start(filepath.Join(o.Dir, "janus.log"), cleanup, program, "-C", filepath.Join(o.Dir, "janus.jcfg"), "-F", o.Dir)
	if err != nil {
		return nil, err
	}
	j := &Janus{Process: p, o: o}
	if err := p.await(ctx, "janus", j.ready); err != nil {
		p.Kill()
		return nil, err
	}
	return j, nil
}

// Options returns the options with all defaults and ports filled in: starting a Janus with them
// is a restart at the same address.
func (j *Janus) Options() JanusOptions { return j.o }

// AdminURL returns the address of the admin API, HTTPURL and WSURL those of the Janus API.
func (j *Janus) AdminURL() string { return "http://" + hostPort(j.o.IP, j.o.AdminPort) + "/admin" }

// HTTPURL returns the address of the Janus API over HTTP.
func (j *Janus) HTTPURL() string { return "http://" + hostPort(j.o.IP, j.o.HTTPPort) + "/janus" }

// WSURL returns the address of the Janus API over WebSockets.
func (j *Janus) WSURL() string { return "ws://" + hostPort(j.o.IP, j.o.WSPort) }

func (o JanusOptions) withDefaults() JanusOptions {
	if o.Name == "" {
		o.Name = "janus"
	}
	if o.IP == "" {
		o.IP = "127.0.0.1"
	}
	if o.AdminSecret == "" {
		o.AdminSecret = "adminsecret"
	}
	if o.SessionTimeout == 0 {
		o.SessionTimeout = 60
	}
	if o.RTPPorts == "" {
		o.RTPPorts = "20000-40000"
	}
	if o.Ready == "" {
		o.Ready = ReadyAdmin
		if o.AdminOff {
			o.Ready = ReadyHTTP
		}
	}
	return o
}

// portTaken is what Janus prints, once for each listener; it runs on without.
var portTaken = regexp.MustCompile(`Couldn't start (admin/monitor )?webserver on port`)

// ready asks with the secret, and checks the name: somebody else's Janus may have the port.
func (j *Janus) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if j.o.Ready == ReadyWS {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", hostPort(j.o.IP, j.o.WSPort))
		if err != nil {
			return err
		}
		return c.Close()
	}
	if portTaken.MatchString(j.LogTail(1 << 20)) {
		return errPortTaken
	}
	base := j.HTTPURL()
	if j.o.Ready == ReadyAdmin {
		base = j.AdminURL()
		body, err := json.Marshal(map[string]string{"janus": "list_sessions", "transaction": "start", "admin_secret": j.o.AdminSecret})
		if err != nil {
			return err
		}
		if err := ask(ctx, http.MethodPost, base, body, `"success"`); err != nil {
			return err
		}
	}
	return ask(ctx, http.MethodGet, base+"/info", nil, `"server-name":"`+j.o.Name+`"`)
}

func ask(ctx context.Context, method, url string, body []byte, want string) error {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	if !bytes.Contains(b, []byte(want)) {
		return fmt.Errorf("%s answered %s without %s", url, resp.Status, want)
	}
	return nil
}

func hostPort(ip string, port int) string { return net.JoinHostPort(ip, strconv.Itoa(port)) }
