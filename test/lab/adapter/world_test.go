package adapter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/test/lab/cluster"
	"github.com/roomscaler/roomscaler/test/lab/supervisor"
)

const (
	namespace = "media"
	pool      = "video"
	// patience is how long something may take: far more than it does on a loaded machine.
	patience = 3 * time.Minute
	glance   = 250 * time.Millisecond
)

// world is a control plane with a StatefulSet, simulated media servers for its pods, a broker that knows them, the adapter
// and an autoscaler.
type world struct {
	t       *testing.T
	dir     string
	plane   *cluster.ControlPlane
	kube    *kubernetes.Clientset
	media   *media
	broker  *supervisor.Command
	url     string // of the broker
	client  *brokerapi.Client
	logs    []string
	program map[string]string // by name
}

func newWorld(t *testing.T, cache cluster.Cache) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), program: map[string]string{}}
	w.build("roomscaler", "roomscaler-adapter")
	var err error
	if w.plane, err = cluster.StartControlPlane(t.Context(), cache, cluster.Options{Dir: filepath.Join(w.dir, "plane"), HPASync: time.Second}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	if w.kube, err = kubernetes.NewForConfig(w.plane.Config()); err != nil {
		t.Fatal(err)
	}
	w.media = newMedia(t, w.roomsOn)
	w.startBroker()
	port := w.startAdapter()
	w.apply(port)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error)
	go func() { ended <- w.plane.RunPods(ctx, namespace, w.media.run) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return w
}

// build makes the programs under test from the source tree.
func (w *world) build(names ...string) {
	w.t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, name := range names {
		w.program[name] = filepath.Join(w.dir, name)
		cmd := exec.CommandContext(w.t.Context(), "go", "build", "-o", w.program[name], "./cmd/"+name)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			w.t.Fatalf("building %s: %v\n%s", name, err, out)
		}
	}
}

// start runs a program until the test ends.
func (w *world) start(name, program string, args ...string) *supervisor.Command {
	w.t.Helper()
	log := filepath.Join(w.dir, name+".log")
	out, err := os.Create(log)
	if err != nil {
		w.t.Fatal(err)
	}
	defer out.Close()
	c, err := supervisor.StartCommand(out, os.Environ(), w.program[program], args...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.logs = append(w.logs, log)
	w.t.Cleanup(func() {
		if err := c.Kill(); err != nil {
			w.t.Error(err)
		}
		<-c.Done()
	})
	return c
}

func (w *world) file(name, content string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w *world) startBroker() {
	w.t.Helper()
	listen := fmt.Sprintf("127.0.0.1:%d", freePort(w.t))
	w.url = "http://" + listen
	w.broker = w.start("broker", "roomscaler", "broker", "--listen", listen, "--metrics-listen", "off", "--pool", pool, "--store", "memory://",
		"--discover", w.media.discover(), "--sweep-interval", "500ms", "--janus-admin-secret-file", w.file("admin-secret", adminSecret), "--log-format", "text")
	var err error
	if w.client, err = brokerapi.NewClient(w.url, nil, nil); err != nil {
		w.t.Fatal(err)
	}
}

// startAdapter starts the adapter with the rights that its documentation gives it, and returns its port.
func (w *world) startAdapter() int {
	w.t.Helper()
	port := freePort(w.t)
	cert, key, _, err := w.plane.ServingCertificate("adapter", "roomscaler-adapter.roomscaler.svc", "localhost")
	if err != nil {
		w.t.Fatal(err)
	}
	config, err := w.plane.Kubeconfig("adapter", "system:serviceaccount:roomscaler:roomscaler-adapter", "system:serviceaccounts")
	if err != nil {
		w.t.Fatal(err)
	}
	w.start("adapter", "roomscaler-adapter", "--broker", w.url, "--config", w.file("pools.yaml", documented(w.t).config),
		"--bind-address", "127.0.0.1", "--secure-port", strconv.Itoa(port), "--tls-cert-file", cert, "--tls-private-key-file", key,
		"--authentication-kubeconfig", config, "--authorization-kubeconfig", config, "--lister-kubeconfig", config, "--log-format", "text")
	return port
}

// eventually waits until f holds.
func (w *world) eventually(t *testing.T, what string, f func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case err := <-w.plane.Failed():
			t.Fatal(err)
		case <-ctx.Done():
			t.Fatalf("waited for %s in vain: %v", what, err)
		}
	}
}

// explain shows what there is to know after a failure.
func (w *world) explain() {
	for _, log := range w.logs {
		if b, err := os.ReadFile(log); err == nil {
			w.t.Logf("%s:\n%s", filepath.Base(log), b[max(0, len(b)-4000):])
		}
	}
}

// metric asks the API server, which asks the adapter.
func (w *world) metric(namespace, name string) (string, error) {
	answer := w.kube.RESTClient().Get().AbsPath("/apis/external.metrics.k8s.io/v1beta1/namespaces", namespace, name).
		Param("labelSelector", "pool="+pool).Do(w.t.Context())
	if err := answer.Error(); err != nil { // unlike that of Raw, it has the adapter's words
		return "", err
	}
	raw, err := answer.Raw()
	if err != nil {
		return "", err
	}
	var list struct {
		Items []struct{ Value string }
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return "", err
	}
	if len(list.Items) != 1 {
		return "", fmt.Errorf("got %d values: %s", len(list.Items), raw)
	}
	return list.Items[0].Value, nil
}

// wants holds when the adapter gives this number of instances.
func (w *world) wants(n string) error {
	got, err := w.metric(namespace, "roomscaler_desired_instances")
	if err != nil {
		return err
	}
	if got != n {
		return fmt.Errorf("%s instances are wanted, not %s", got, n)
	}
	return nil
}

// pods holds when the StatefulSet has so many replicas and ready pods.
func (w *world) pods(n int) error {
	s, err := w.kube.AppsV1().StatefulSets(namespace).Get(w.t.Context(), workload, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if got := *s.Spec.Replicas; int(got) != n || int(s.Status.Replicas) != n || int(s.Status.ReadyReplicas) != n {
		return fmt.Errorf("it has %d replicas, %d pods and %d ready ones, not %d", got, s.Status.Replicas, s.Status.ReadyReplicas, n)
	}
	return nil
}

func (w *world) autoscaler(t *testing.T) *autoscalingv2.HorizontalPodAutoscaler {
	t.Helper()
	h, err := w.kube.AutoscalingV2().HorizontalPodAutoscalers(namespace).Get(t.Context(), workload, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (w *world) facts(t *testing.T) brokerapi.PoolFacts {
	t.Helper()
	f, err := w.client.Facts(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (w *world) instance(t *testing.T, name string) brokerapi.Instance {
	t.Helper()
	in, err := w.client.Instance(t.Context(), pool, name)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func (w *world) rooms(t *testing.T) []brokerapi.Pin {
	t.Helper()
	page, err := w.client.Rooms(t.Context(), pool, brokerapi.RoomsQuery{})
	if err != nil {
		t.Fatal(err)
	}
	return page.Rooms
}

func (w *world) create(t *testing.T, room string) {
	t.Helper()
	w.eventually(t, "room "+room, func() error {
		_, _, err := w.client.CreateRoom(t.Context(), pool, room, brokerapi.CreateRoom{})
		return err
	})
}

// createOn makes a room and holds when it is on the instance. One that comes to be on the first instance is removed
// again, so that the number of rooms stays about the same; the others are full enough then to be passed over.
func (w *world) createOn(t *testing.T, instance string) error {
	pin, _, err := w.client.CreateRoom(t.Context(), pool, fmt.Sprintf("more-%d", len(w.rooms(t))), brokerapi.CreateRoom{})
	switch {
	case err != nil:
		return err
	case pin.Instance == instance:
		return nil
	case pin.Instance == workload+"-0":
		w.remove(t, pin.Room)
	}
	return fmt.Errorf("it came to be on %s", pin.Instance)
}

func (w *world) remove(t *testing.T, room string) {
	t.Helper()
	if err := w.client.DeleteRoom(t.Context(), pool, room, 0); err != nil {
		t.Fatal(err)
	}
}

// roomsOn says, for the media servers, what is on an instance that is being removed.
func (w *world) roomsOn(ctx context.Context, instance string) ([]string, error) {
	page, err := w.client.Rooms(ctx, pool, brokerapi.RoomsQuery{Instance: instance})
	var rooms []string
	for _, pin := range page.Rooms {
		rooms = append(rooms, pin.Room)
	}
	return rooms, err
}
