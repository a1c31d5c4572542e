package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/broker/janus"
	"github.com/roomscaler/roomscaler/drainhook"
)

// exitExpired is the exit code of a drain whose grace is over with somebody left.
const exitExpired = 3

// drainhookOptions are the flags of the subcommand drainhook.
type drainhookOptions struct {
	broker      brokerClientOptions
	pool        string
	instance    string
	grace       time.Duration
	janusURL    string
	janusSecret string
	log         logOptions
}

func drainhookCommand() *cobra.Command {
	var o drainhookOptions
	c := &cobra.Command{
		Use:   "drainhook",
		Short: "Hold this pod's end until its media server is empty (preStop)",
		Long: `Marks this instance at the broker, so that no new room comes, and waits until its
rooms have ended. Meant as preStop hook of the media server's container.

A broker that is away or refuses does not end the wait: the local server's sessions
decide meanwhile. Files are read anew when they are needed, and one that cannot be read does not end
the wait either.

Exit codes: 0 the instance is empty, or its server has ended; 1 the hook was
interrupted; 2 a flag is wrong, and nothing was waited for; 3 the grace is over and it
was not seen to be empty.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			log, err := o.log.logger(c.ErrOrStderr())
			if err != nil {
				return err
			}
			return o.run(c.Context(), log.With("component", "drainhook", "pool", o.pool, "instance", o.instance))
		},
	}
	host, _ := os.Hostname() // without one the flag is needed, and validate says so
	f := c.Flags()
	o.broker.flags(f, "instance")
	f.StringVar(&o.pool, "pool", "default", "pool of this instance")
	f.StringVar(&o.instance, "instance", host, "name of this instance")
	f.DurationVar(&o.grace, "drain-grace", time.Hour, "how long to hold at most; below terminationGracePeriodSeconds, with a margin for the server's own end")
	f.StringVar(&o.janusURL, "janus-admin-url", "http://127.0.0.1:7088/admin", "admin API of the local Janus")
	f.StringVar(&o.janusSecret, "janus-admin-secret-file", "", "file that holds its admin secret; default: the one that Janus comes with")
	o.log.flags(f)
	return c
}

func (o *drainhookOptions) validate() error {
	if err := broker.CheckPool(o.pool); err != nil {
		return asFlag(err)
	}
	if err := broker.CheckInstance(o.instance); err != nil {
		return asFlag(err)
	}
	if o.grace <= 0 {
		return wrong("drain-grace", "must be above zero; give a duration such as 55m")
	}
	if _, err := brokerapi.NewClient(o.broker.url, nil, nil); err != nil {
		return wrong("broker", "%s", strings.TrimPrefix(err.Error(), "broker URL: "))
	}
	u, err := url.Parse(o.janusURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return wrong("janus-admin-url", "give one such as http://127.0.0.1:7088/admin")
	}
	return nil
}

// run returns an *exitError for every way to end but an empty instance.
func (o *drainhookOptions) run(ctx context.Context, log *slog.Logger) error {
	if err := o.validate(); err != nil {
		return err
	}
	local := &localJanus{address: o.janusURL, secretFile: o.janusSecret, client: janus.NewClient(janus.DefaultSecret, "", nil)}
	r, err := drainhook.Run(ctx, drainhook.Config{Pool: o.pool, Instance: o.instance, Grace: o.grace, Log: log}, &hookBroker{options: o.broker}, local)
	if err != nil {
		return &exitError{code: exitFailure, err: err}
	}
	held := r.Held.Round(time.Second)
	switch r.Outcome {
	case drainhook.Gone:
		log.Warn("the local server has ended while it was drained, and its calls with it", "held", held)
	case drainhook.Expired:
		return &exitError{code: exitExpired, err: fmt.Errorf("the drain grace of %s is over and %s is not empty: rooms left %s, sessions left %s; they end with it",
			o.grace, o.instance, orUnknown(r.Rooms), orUnknown(r.Sessions))}
	default:
		log.Info("the instance is empty", "held", held)
	}
	return nil
}

func orUnknown(n int) string {
	if n < 0 {
		return "unknown"
	}
	return fmt.Sprint(n)
}

// hookBroker is a broker's client that is built when it is first needed, and again until
// that succeeds: an unreadable file must not end the hook.
type hookBroker struct {
	options brokerClientOptions
	mu      sync.Mutex
	client  *brokerapi.Client
}

func (b *hookBroker) Drain(ctx context.Context, pool, instance string, r brokerapi.DrainRequest) (brokerapi.Drain, error) {
	c, err := b.get()
	if err != nil {
		return brokerapi.Drain{}, err
	}
	return c.Drain(ctx, pool, instance, r)
}

func (b *hookBroker) DrainStatus(ctx context.Context, pool, instance, owner string, wait time.Duration) (brokerapi.Drain, error) {
	c, err := b.get()
	if err != nil {
		return brokerapi.Drain{}, err
	}
	return c.DrainStatus(ctx, pool, instance, owner, wait)
}

func (b *hookBroker) get() (*brokerapi.Client, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.client != nil {
		return b.client, nil
	}
	c, err := b.options.client()
	if err != nil {
		return nil, err
	}
	b.client = c
	return c, nil
}

// localJanus is the Janus in this pod as the hook needs it.
type localJanus struct {
	address    string
	secretFile string
	client     *janus.Client
}

func (l *localJanus) Sessions(ctx context.Context) (int, error) {
	if err := l.refresh(); err != nil {
		return 0, err
	}
	n, err := l.client.Sessions(ctx, l.address)
	var f *broker.FaultError
	if errors.As(err, &f) && f.Fault == broker.FaultRefused {
		err = fmt.Errorf("%w: %w", drainhook.ErrGone, err)
	}
	return n, err
}

func (l *localJanus) SetAccepting(ctx context.Context, accept bool) error {
	if err := l.refresh(); err != nil {
		return err
	}
	return l.client.SetAccepting(ctx, l.address, accept)
}

// refresh reads the secret anew: it may change while a drain holds for hours.
func (l *localJanus) refresh() error {
	if l.secretFile == "" {
		return nil
	}
	secret, err := os.ReadFile(l.secretFile)
	if err != nil {
		return fmt.Errorf("--janus-admin-secret-file: %w", err)
	}
	l.client.SetSecrets(strings.TrimSpace(string(secret)), "")
	return nil
}
