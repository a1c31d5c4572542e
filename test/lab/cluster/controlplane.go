package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/roomscaler/roomscaler/test/lab/supervisor"
)

// Options of a control plane.
type Options struct {
	// Dir is where certificates, logs and the store's data go. It must be empty or absent;
	// what is in it stays when the control plane stops.
	Dir string
	// HPASync is how often horizontal pod autoscalers are looked at; 0 = 15 s, as everywhere.
	HPASync time.Duration
}

// ControlPlane is a running etcd, API server and controller manager on loopback. There
// is no node: pods are created and stay pending unless [ControlPlane.RunPods] runs.
type ControlPlane struct {
	o      Options
	url    string
	ca     *authority
	config *rest.Config
	procs  []*program // in the order of their start

	failed   chan error
	stopping chan struct{}
	watchers sync.WaitGroup
}

// program is one process and the file of its output.
type program struct {
	name string
	log  string
	*supervisor.Command
}

const (
	startTimeout = 3 * time.Minute // far more than a start takes on a loaded machine
	stopTimeout  = 20 * time.Second
	readyEvery   = 200 * time.Millisecond
	loopback     = "127.0.0.1"
)

// StartControlPlane starts the programs of [ControlPlaneComponents] from the cache, at free ports, and waits until the API
// server is ready and the controllers' service accounts work. They die with this process. The error wraps
// [ErrNotBuilt] when one is not in the cache. The context bounds the start alone.
func StartControlPlane(ctx context.Context, cache Cache, o Options) (*ControlPlane, error) {
	if o.HPASync == 0 {
		o.HPASync = 15 * time.Second
	}
	bin := map[string]string{}
	for _, name := range ControlPlaneComponents() {
		path, err := cache.Program(name)
		if err != nil {
			return nil, err
		}
		bin[name] = path
	}
	ports, err := freePorts(4)
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{o: o, url: "https://" + net.JoinHostPort(loopback, strconv.Itoa(ports[2])), failed: make(chan error, 3), stopping: make(chan struct{})}
	if err := c.writeFiles(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, step := range []func() error{
		func() error { return c.start("etcd", bin["etcd"], c.etcd(ports[0], ports[1])) },
		func() error {
			return c.start("kube-apiserver", bin["kube-apiserver"], c.apiserver(ports[0], ports[2]))
		},
		func() error { return c.await(ctx, "kube-apiserver", c.apiReady) },
		func() error {
			return c.start("kube-controller-manager", bin["kube-controller-manager"], c.controllerManager(ports[3]))
		},
		func() error { return c.await(ctx, "kube-controller-manager", c.controllersWork) },
	} {
		if err := step(); err != nil {
			return nil, errors.Join(err, c.Stop())
		}
	}
	return c, nil
}

// freePorts returns n TCP ports of loopback that nothing listens at just now.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
		if err != nil {
			return nil, fmt.Errorf("finding a free port: %w", err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// writeFiles makes the certificates and the configurations of clients.
func (c *ControlPlane) writeFiles() error {
	if err := os.MkdirAll(c.pki(), 0o700); err != nil {
		return fmt.Errorf("making the folder of certificates: %w", err)
	}
	var err error
	if c.ca, err = newAuthority(c.pki(), "ca"); err != nil {
		return err
	}
	front, err := newAuthority(c.pki(), "front-proxy-ca")
	if err != nil {
		return err
	}
	if err := writeSigner(c.pki(), "service-accounts"); err != nil {
		return err
	}
	if err := front.issue("front-proxy", frontProxyUser, nil, nil); err != nil {
		return err
	}
	if err := c.ca.issue("apiserver", "kube-apiserver", nil, []string{loopback, "localhost", "kubernetes.default.svc"}); err != nil {
		return err
	}
	if _, err := c.Kubeconfig("controller-manager", "system:kube-controller-manager"); err != nil {
		return err
	}
	admin, err := c.Kubeconfig("admin", "kubernetes-admin", "system:masters")
	if err != nil {
		return err
	}
	if c.config, err = clientcmd.BuildConfigFromFlags("", admin); err != nil {
		return fmt.Errorf("reading %s: %w", admin, err)
	}
	c.config.QPS, c.config.Burst = 200, 400
	return nil
}

func (c *ControlPlane) pki() string { return filepath.Join(c.o.Dir, "pki") }

func (c *ControlPlane) pair(name string) (cert, key string) {
	return filepath.Join(c.pki(), name+".crt"), filepath.Join(c.pki(), name+".key")
}

// Kubeconfig writes a client's configuration for a user of some groups, with a certificate of its
// own, and returns its path. A service account's name is a user's too.
func (c *ControlPlane) Kubeconfig(file, user string, groups ...string) (string, error) {
	if err := c.ca.issue("client-"+file, user, groups, nil); err != nil {
		return "", err
	}
	cert, key := c.pair("client-" + file)
	ca, _ := c.pair("ca")
	config := clientcmdapi.NewConfig()
	config.Clusters["lab"] = &clientcmdapi.Cluster{Server: c.url, CertificateAuthority: ca}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificate: cert, ClientKey: key}
	config.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: user}
	config.CurrentContext = "lab"
	path := filepath.Join(c.o.Dir, file+".kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("writing %s: %w", path, err)
	}
	return path, nil
}

// ServingCertificate makes a certificate for a server of the given names and addresses, signed by the cluster's authority,
// and returns the paths of its file, its key's and the authority's.
func (c *ControlPlane) ServingCertificate(name string, hosts ...string) (cert, key, ca string, err error) {
	if err := c.ca.issue("server-"+name, name, nil, hosts); err != nil {
		return "", "", "", err
	}
	cert, key = c.pair("server-" + name)
	ca, _ = c.pair("ca")
	return cert, key, ca, nil
}

// Config returns the way to the API server for somebody who may do everything.
func (c *ControlPlane) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Failed yields an error for each program that ends by itself.
func (c *ControlPlane) Failed() <-chan error { return c.failed }

func (c *ControlPlane) start(name, path string, args []string) error {
	p := &program{name: name, log: filepath.Join(c.o.Dir, name+".log")}
	out, err := os.Create(p.log)
	if err != nil {
		return fmt.Errorf("making the log of %s: %w", name, err)
	}
	defer out.Close()
	if p.Command, err = supervisor.StartCommand(out, os.Environ(), path, args...); err != nil {
		return err
	}
	c.procs = append(c.procs, p)
	c.watchers.Go(func() {
		select {
		case <-c.stopping:
		case <-p.Done():
			c.failed <- fmt.Errorf("%s has ended (%v): %s", p.name, p.Err(), tail(p.log))
		}
	})
	return nil
}

// await polls ready until it is, the program has ended or ctx has.
func (c *ControlPlane) await(ctx context.Context, name string, ready func(context.Context) error) error {
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case err := <-c.failed:
			return fmt.Errorf("waiting for %s: %w", name, err)
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w (%w)", name, ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// tail returns the end of a log.
func tail(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-2000):])
}

func (c *ControlPlane) apiReady(ctx context.Context) error {
	k, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	return k.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
}

// Stop ends the programs, the last that was started first, and waits for them. It is called once.
func (c *ControlPlane) Stop() error {
	close(c.stopping)
	c.watchers.Wait()
	var errs []error
	for _, p := range slices.Backward(c.procs) {
		errs = append(errs, p.Terminate())
		limit := time.NewTimer(stopTimeout)
		select {
		case <-p.Done():
		case <-limit.C:
			errs = append(errs, p.Kill())
			<-p.Done()
		}
		limit.Stop()
	}
	return errors.Join(errs...)
}
