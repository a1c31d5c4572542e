package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/roomscaler/roomscaler/scaler"
)

// forgetAfter is how long the watches for a ScaledObject outlive the last call for it.
const forgetAfter = 10 * time.Minute

// ErrNoConfig says that there is neither a kubeconfig nor a service account.
var ErrNoConfig = errors.New("no Kubernetes API is configured; run in a pod with a service account, or set KUBECONFIG")

// Connect returns a client by the file in KUBECONFIG, else by the service account of the pod it runs in. It
// makes no request. Without either it is ErrNoConfig.
func Connect() (dynamic.Interface, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, ErrNoConfig
	}
	if err != nil {
		return nil, fmt.Errorf("read the configuration of the Kubernetes client: %w", err)
	}
	config.UserAgent = "roomscaler-scaler"
	config.WarningHandler = rest.NoWarnings{} // they would be printed
	config.QPS, config.Burst = 50, 100
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a Kubernetes client: %w", err)
	}
	return c, nil
}

// Watcher implements scaler.Cluster as long as Run runs.
type Watcher struct {
	client dynamic.Interface
	log    *slog.Logger
	events chan event
	wake   chan struct{} // there are scopes to be started

	mu      sync.Mutex
	scopes  map[scaler.Ref]*scope
	waiting []*scope
}

// New returns a Watcher; it makes no request before Run.
func New(client dynamic.Interface, log *slog.Logger) *Watcher {
	return &Watcher{
		client: client, log: log.With("component", "kubernetes"), events: make(chan event, maxQueued),
		wake: make(chan struct{}, 1), scopes: map[scaler.Ref]*scope{},
	}
}

// Run watches and writes Events until ctx ends. It is called once.
func (w *Watcher) Run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { w.writeEvents(ctx) })
	for {
		select {
		case <-ctx.Done():
			all.Wait()
			return
		case <-w.wake:
			w.mu.Lock()
			started := w.waiting
			w.waiting = nil
			w.mu.Unlock()
			for _, s := range started {
				all.Go(func() { s.run(ctx, w.forget) })
			}
		}
	}
}

// View implements scaler.Cluster.
func (w *Watcher) View(ref scaler.Ref) (scaler.Workload, error) { return w.scope(ref).view() }

// scope returns what is watched for a ScaledObject, and begins with it at the first call.
func (w *Watcher) scope(ref scaler.Ref) *scope {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, ok := w.scopes[ref]
	if !ok {
		s = newScope(ref, w.client)
		w.scopes[ref] = s
		w.waiting = append(w.waiting, s)
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
	s.asked()
	return s
}

// forget drops a scope that nobody has asked for long, and reports whether it did.
func (w *Watcher) forget(s *scope) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.silent() < forgetAfter {
		return false
	}
	delete(w.scopes, s.ref)
	return true
}
