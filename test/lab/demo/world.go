package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/test/lab/dnsserver"
	"github.com/roomscaler/roomscaler/test/lab/load"
	"github.com/roomscaler/roomscaler/test/lab/supervisor"
	"github.com/roomscaler/roomscaler/test/procs"
)

// world is one pool with everything around it.
type world struct {
	o     Options
	tools tools
	naive bool
	block byte
	dir   string // of its logs
	log   *slog.Logger

	pods    *pods
	set     *supervisor.Supervisor
	brokers *load.Brokers
	urls    []string // of the brokers
	scaler  string   // its address
	load    *load.Load
	profile load.Profile
	rec     *recorder

	children []child
	stops    []func() // in the order of starting
	failed   chan error
}

// child is a program of ours that must not end by itself.
type child struct {
	name, log string
	*supervisor.Command
}

func newWorld(o Options, t tools, naive bool, dir string) (*world, error) {
	w := &world{o: o, tools: t, naive: naive, block: 1, dir: filepath.Join(dir, "roomscaler"), failed: make(chan error, 1)}
	if naive {
		w.block, w.dir = 2, filepath.Join(dir, "naive")
	}
	if err := errors.Join(os.RemoveAll(w.dir), os.MkdirAll(w.dir, 0o700)); err != nil { // an earlier run may have been kept there
		return nil, fmt.Errorf("making a folder for logs: %w", err)
	}
	f, err := os.Create(filepath.Join(w.dir, "lab.log"))
	if err != nil {
		return nil, fmt.Errorf("making a log: %w", err)
	}
	w.stops = append(w.stops, func() { f.Close() })
	w.log = slog.New(slog.NewTextHandler(f, nil))
	w.profile = load.Demand(o.quiet(), o.peak(), o.Scale)
	w.rec = newRecorder(w)
	return w, nil
}

// title is how the run is called.
func (w *world) title() string {
	if w.naive {
		return "Naive scaler"
	}
	return "Roomscaler"
}

// start brings up the pool with its first instances, the brokers and the scaler. After an error, stop ends
// what had been started.
func (w *world) start(ctx context.Context) error {
	var err error
	if w.pods, err = newPods(w.tools, w.dir, w.block); err != nil {
		return err
	}
	w.set = supervisor.New(w.supervision(), base)
	w.background(w.set.Run)
	dns, err := dnsserver.Listen(ctx, service, func() []dnsserver.Endpoint { return w.pods.endpoints(w.set.Pods()) })
	if err != nil {
		return err
	}
	w.stops = append(w.stops, func() { dns.Close() })
	if err := w.startBrokers(ctx, dns.Addr()); err != nil {
		return err
	}
	if err := w.startScaler(ctx); err != nil {
		return err
	}
	return w.awaitInstances(ctx)
}

// background runs f until the world stops.
func (w *world) background(f func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { f(ctx) })
	w.stops = append(w.stops, func() { cancel(); wg.Wait() })
}

func (w *world) supervision() supervisor.Config {
	c := supervisor.Config{Start: w.pods.start, Grace: podGrace, RestartDelay: time.Second, Log: w.log, OnEvent: func(e supervisor.Event) {
		w.log.Info("pod", "pod", e.Pod.Ordinal, "life", e.Pod.Life, "phase", string(e.Pod.Phase), "cause", string(e.Pod.Cause), "spec", e.Spec)
	}}
	if !w.naive {
		c.PreStop = w.drainhook
	}
	return c
}

// drainhook runs the product's preStop hook in a pod.
func (w *world) drainhook(ctx context.Context, p supervisor.Pod) error {
	c, err := startLogged(filepath.Join(w.dir, "drainhook.log"), w.tools.program, "drainhook", "--broker", w.urls[p.Ordinal%len(w.urls)], "--pool", pool,
		"--instance", name(p.Ordinal), "--drain-grace", hookGrace.String(), "--janus-admin-url", w.pods.adminURL(p.Ordinal), "--janus-admin-secret-file", w.secretFile())
	if err != nil {
		return err
	}
	return c.Wait(ctx)
}

func (w *world) secretFile() string { return filepath.Join(w.dir, "admin-secret") }
func (w *world) keyFile() string    { return filepath.Join(w.dir, "admin-key") }

func (w *world) startBrokers(ctx context.Context, dns string) error {
	for file, text := range map[string]string{w.secretFile(): adminSecret, w.keyFile(): adminKey} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return fmt.Errorf("writing a secret: %w", err)
		}
	}
	store, replicas := "memory://", 1
	if w.tools.redis {
		r, err := procs.StartRedis(ctx, procs.RedisOptions{Dir: filepath.Join(w.dir, "redis")})
		if err != nil {
			return err
		}
		w.stops = append(w.stops, r.Kill)
		store, replicas = "redis://"+r.Addr()+"/0", 2
	}
	w.brokers = &load.Brokers{Pool: pool}
	for i := range replicas {
		listen, metrics, err := twoAddresses()
		if err != nil {
			return err
		}
		url := "http://" + listen
		err = w.spawn(ctx, fmt.Sprintf("broker-%d", i), url+brokerapi.PathReady, "broker", "--listen", listen, "--metrics-listen", metrics, "--store", store,
			"--pool", pool, "--backend", "janus", "--discover", fmt.Sprintf("dns:%s:%d?resolver=%s", service, w.pods.adminPort, dns),
			"--placement", "least-loaded", "--target", strconv.Itoa(w.o.target()), "--sweep-interval", "1s", "--instance-timeout", "2s",
			"--janus-admin-secret-file", w.secretFile(), "--janus-admin-key-file", w.keyFile(),
			"--url-http", fmt.Sprintf("http://{address-host}:%d/janus", w.pods.httpPort))
		if err != nil {
			return err
		}
		client, err := brokerapi.NewClient(url, nil, nil)
		if err != nil {
			return err
		}
		w.urls = append(w.urls, url)
		w.brokers.Clients = append(w.brokers.Clients, client)
	}
	return nil
}

// spawn starts a subcommand of the product and waits until url answers. Should it end later, the run fails.
func (w *world) spawn(ctx context.Context, name, url string, args ...string) error {
	c := child{name: name, log: filepath.Join(w.dir, name+".log")}
	var err error
	if c.Command, err = startLogged(c.log, w.tools.program, args...); err != nil {
		return err
	}
	w.stops = append(w.stops, func() {
		c.Terminate()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		c.Wait(ctx) // however it ends: it is over
	})
	w.children = append(w.children, c)
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := await(ctx, c.Command, url); err != nil {
		return fmt.Errorf("starting %s: %w\n%s", name, err, tail(c.log))
	}
	return nil
}

// awaitInstances waits until the brokers can place rooms on all first instances.
func (w *world) awaitInstances(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		f, err := w.brokers.Facts(ctx)
		ready := 0
		for _, in := range f.Instances {
			if in.State == string(broker.StateReady) {
				ready++
			} else {
				err = fmt.Errorf("%s is %s: %s", in.Name, in.State, in.Reason)
			}
		}
		if ready >= base && f.Phase == brokerapi.PhaseReady {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the first %d instances: %w", base, errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}

// run lets the load in and the autoscaler loose, and returns when the pool has come down again, when ctx ends, or at
// the deadline.
func (w *world) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.profile.End())
	defer cancel()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
	defer client.CloseIdleConnections()
	w.load = load.New(load.Config{
		Directory: w.brokers, HTTP: client, Lives: lives{w.set}, Pace: time.Second, Patience: 20 * time.Second, Log: w.log, OnEvent: w.rec.room,
		URL: func(p brokerapi.Pin) string {
			if p.URLs == nil {
				return ""
			}
			return p.URLs.HTTP
		},
	}, w.profile.Plan(w.o.Seed))
	w.rec.begin(w.load)
	var wg sync.WaitGroup
	defer wg.Wait()
	var window time.Duration
	if w.naive {
		window = w.o.cooldown()
	}
	wg.Go(func() {
		if err := autoscale(ctx, w.scaler, w.o.metadata(), w.o.autoscaler(window), w.set, w.log); err != nil {
			w.fail(err)
		}
	})
	wg.Go(func() { w.load.Run(ctx) })
	wg.Go(func() { w.rec.run(ctx) })
	for _, c := range w.children {
		wg.Go(func() {
			select {
			case <-ctx.Done():
			case <-c.Done():
				w.fail(fmt.Errorf("%s ended by itself: %w\n%s", c.name, c.Err(), tail(c.log)))
			}
		})
	}
	defer cancel() // before the wait
	select {
	case <-ctx.Done():
		return nil // the verdict says what that means
	case <-w.rec.down:
		return nil
	case err := <-w.failed:
		return err
	}
}

func (w *world) fail(err error) {
	select {
	case w.failed <- err:
	default:
	}
}

// stop ends everything, the last first.
func (w *world) stop() {
	for i := len(w.stops) - 1; i >= 0; i-- {
		w.stops[i]()
	}
	w.stops = nil
}

// lives is load.Lives over a supervisor.
type lives struct{ set *supervisor.Supervisor }

func (l lives) Current(instance string) int {
	n, ok := broker.OrdinalOf(instance)
	if !ok {
		return 0
	}
	p, _ := l.set.Current(n)
	return p.Life
}

func (l lives) Cause(life int) string {
	p, _ := l.set.Life(life)
	return string(p.Cause)
}

func twoAddresses() (a, b string, err error) {
	out := make([]string, 2)
	for i := range out {
		port, err := procs.FreePort("127.0.0.1")
		if err != nil {
			return "", "", err
		}
		out[i] = "127.0.0.1:" + strconv.Itoa(port)
	}
	return out[0], out[1], nil
}
