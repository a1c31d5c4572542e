package janus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/roomscaler/roomscaler/broker"
)

// The remedies. None holds anything that a server said.
const (
	adviceTimeout  = "Janus did not answer in time: it hangs, is overloaded or is cut off; look at its process and raise --instance-timeout if it is only slow"
	adviceStuck    = "the videoroom did not answer in time: look whether the plugin hangs while Janus itself still answers, or whether its host is overloaded"
	adviceRefused  = "nothing listens at the admin address: start Janus; if it runs, set admin_http = true in janus.transport.http.jcfg, check admin_port and admin_ip there, and look in its log for \"Couldn't start admin/monitor webserver\" (the port is taken)"
	adviceAdminOff = "Janus runs there without its admin API: set admin_http = true in the admin section of janus.transport.http.jcfg (the default is false) and restart it; if it is set, look in its log for \"Couldn't start admin/monitor webserver\" (the port is taken)"
	adviceNotAdmin = "a web server answers there, but not the admin API: the address must be that of the admin API (port 7088 and path /admin by default, not 8088 and /janus); set admin_http = true in janus.transport.http.jcfg and check admin_port and admin_base_path there"
	adviceNoName   = "the name of the instance does not resolve: check the address in the list of instances"
	adviceNoRoute  = "there is no way to the instance: check its address, the network policy and, for https, the certificate"
	adviceBroken   = "the connection broke before the answer: Janus ended, or something between closes connections; look at its process and log"
	adviceSecret   = "Janus does not take the admin secret: give the admin_secret of janus.jcfg in the admin secret file"
	adviceACL      = "Janus does not let this broker ask: add its address to admin_acl in janus.transport.http.jcfg"
	advicePlugin   = "Janus runs without the videoroom: install libjanus_videoroom.so and take it out of plugins.disable in janus.jcfg"
	adviceNoKey    = "the videoroom has an admin_key and this broker has none, so it can neither make rooms nor see private ones: give the admin_key of janus.plugin.videoroom.jcfg in the admin key file"
	adviceWrongKey = "the videoroom does not take the admin key: give the admin_key of janus.plugin.videoroom.jcfg in the admin key file"
	adviceOther    = "what answers there is no Janus as this broker knows it: check the address; another program may have taken Janus's admin port, then its log says \"Couldn't start admin/monitor webserver\""
	adviceProxy    = "something between the broker and Janus answers for it: let the address lead to Janus itself"
	adviceIDs      = "the videoroom wants room ids of another kind than at the last look: string_ids in janus.plugin.videoroom.jcfg was changed; the next look sees it"
	adviceOverlord = "the admin secret is Janus's well-known default: set another admin_secret in janus.jcfg"
	adviceHidden   = "the videoroom lost its admin_key while rooms were being made, so private rooms may be there that nobody can list: put admin_key back in janus.plugin.videoroom.jcfg and restart Janus when it is empty"
	advicePublic   = "an admin key is configured here but none in the videoroom, so rooms there are public: set admin_key in janus.plugin.videoroom.jcfg"
)

// refused is a failure of a call that certainly had no effect.
func refused(f broker.Fault, advice string, err error) error {
	return &broker.FaultError{Fault: f, Advice: advice, Err: fmt.Errorf("%w: %w", broker.ErrRefused, err)}
}

// uncertain is a failure of a call that may have had its effect.
func uncertain(f broker.Fault, advice string, err error) error {
	return &broker.FaultError{Fault: f, Advice: advice, Err: fmt.Errorf("%w: %w", broker.ErrUncertain, err)}
}

func badAnswer(what string, err error) error {
	return uncertain(broker.FaultOther, adviceOther, fmt.Errorf("%s: %w", what, err))
}

// sendError is a request that got no answer.
type sendError struct {
	verb string
	sent bool // it may have reached the server

	shown string // the error's words, without secrets
	err   error
}

func (e *sendError) Error() string { return e.verb + ": " + e.shown }
func (e *sendError) Unwrap() error { return e.err }

// explain makes a fault of a request that got no answer. It may ask the server once more, to tell a
// Janus without admin API from none.
func (c *Client) explain(ctx context.Context, address string, err error) error {
	var e *sendError
	if !errors.As(err, &e) {
		return badAnswer("ask", err)
	}
	failed := refused
	if e.sent {
		failed = uncertain
	}
	var timeout interface{ Timeout() bool }
	var noName *net.DNSError
	switch {
	case errors.Is(err, errTooLong):
		return failed(broker.FaultOther, adviceOther, err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		if e.verb == verbPlugin {
			return failed(broker.FaultTimeout, adviceStuck, err)
		}
		return failed(broker.FaultTimeout, adviceTimeout, err)
	case errors.Is(err, syscall.ECONNREFUSED):
		if c.janusAnswers(ctx, address) {
			return failed(broker.FaultAdminOff, adviceAdminOff, err)
		}
		return failed(broker.FaultRefused, adviceRefused, err)
	case errors.As(err, &noName):
		return failed(broker.FaultUnreachable, adviceNoName, err)
	case e.sent:
		return failed(broker.FaultUnreachable, adviceBroken, err)
	}
	return failed(broker.FaultUnreachable, adviceNoRoute, err)
}

// janusAnswers reports whether the Janus API answers at its usual port on the host of an admin address.
func (c *Client) janusAnswers(ctx context.Context, address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	info := url.URL{Scheme: u.Scheme, Host: net.JoinHostPort(u.Hostname(), "8088"), Path: "/janus/info"}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, info.String(), nil)
	if err != nil {
		return false
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
