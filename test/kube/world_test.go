package kube

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/kubernetes/pkg/controller/statefulset"

	"github.com/roomscaler/roomscaler/broker"
	"github.com/roomscaler/roomscaler/broker/brokerapi"
	"github.com/roomscaler/roomscaler/broker/httpapi"
	"github.com/roomscaler/roomscaler/broker/memstore"
	"github.com/roomscaler/roomscaler/scaler"
)

const (
	setName   = "janus"
	perServer = 10 // the target, and how many people each room has: a room fills an instance
	maximum   = 40
	// answerTime is from the HPA's question to the scaler's answer.
	answerTime = 200 * time.Millisecond
)

// conditions of a world.
type conditions struct {
	replicas int           // of the StatefulSet to begin with
	tol      tolerance     // of the HPA
	grace    time.Duration // terminationGracePeriodSeconds
	noHook   bool          // pods have no preStop hook: a server ends as soon as its pod is deleted
	minimum  int           // minReplicaCount; 0 = 1
	drain    time.Duration // how long the scaler holds a busy instance that it has marked; 0 = 2h
	window   int32         // the HPA's downscale stabilization window in seconds
	late     func() time.Duration
	source   func(scaler.Source) scaler.Source
}

// world is a cluster with a pool in it, in the time of a synctest bubble.
type world struct {
	conditions
	t       *testing.T
	ctx     context.Context
	api     *apiServer
	media   *mediaServers
	client  *brokerapi.Client
	view    *clusterView
	keda    *keda
	kubelet *kubelet
	app     *app
}

// inWorld runs a test in a world whose pods are ready and whose directory is in use.
func inWorld(t *testing.T, c conditions, test func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		w := &world{conditions: c, t: t, ctx: ctx, api: newAPIServer(), media: &mediaServers{running: map[string]*mediaServer{}}}
		stop := w.start(&running)
		w.step(20 * time.Second)
		test(w)
		cancel()
		running.Wait()
		stop()
	})
}

func (w *world) start(running *sync.WaitGroup) (stop func()) {
	t, ctx := w.t, w.ctx
	w.minimum = max(w.minimum, 1)
	if w.drain == 0 {
		w.drain = 2 * time.Hour
	}
	if w.late == nil {
		w.late = func() time.Duration { return 0 }
	}
	service, err := broker.NewService(broker.Config{
		Pool: setName, Placement: broker.Packed, Target: perServer, MaxSessions: perServer, Key: broker.RoomKey("0123456789abcdef"),
	}, memstore.New(memstore.Options{StepCap: 10 * time.Second}), w.media, finder{w.api}, nil)
	if err != nil {
		t.Fatal(err)
	}
	api := httpapi.New(map[string]httpapi.Served{setName: {Pool: service}}, httpapi.Options{})
	w.client, err = brokerapi.NewClient("http://broker", nil, &http.Client{Transport: handler{api}})
	if err != nil {
		t.Fatal(err)
	}
	w.kubelet = newKubelet(w)
	w.app = &app{w: w, rooms: map[string]*room{}}

	if _, err := w.api.AppsV1().StatefulSets(namespace).Create(ctx, newSet(w.replicas, w.grace), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	up, down := unlimited(w.tol), unlimited(w.tol)
	up.Policies = []autoscalingv2.HPAScalingPolicy{
		{Type: autoscalingv2.PercentScalingPolicy, Value: 100, PeriodSeconds: 15}, {Type: autoscalingv2.PodsScalingPolicy, Value: 10, PeriodSeconds: 15},
	}
	down.Policies = []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 4, PeriodSeconds: 15}}
	down.StabilizationWindowSeconds = &w.window
	hpa := newHPA(setName, setName, "s0-roomscaler-"+setName, int32(w.minimum), maximum, up, down)
	if _, err := w.api.AutoscalingV2().HorizontalPodAutoscalers(namespace).Create(ctx, hpa, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f := informers.NewSharedInformerFactory(w.api, resync)
	w.view = newClusterView(w.api, f)
	o := scaler.Options{Source: w.client, Cluster: w.view, Logger: slog.New(slog.DiscardHandler)}
	if w.source != nil {
		o.Source = w.source(w.client)
	}
	if os.Getenv("KUBE_LOG") != "" {
		o.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	s, err := scaler.New(o)
	if err != nil {
		t.Fatal(err)
	}
	w.keda = newKEDA(s, func(string) map[string]string { return w.trigger() })
	w.keda.takes = answerTime
	sets := statefulset.NewStatefulSetController(ctx, f.Core().V1().Pods(), f.Apps().V1().StatefulSets(), f.Core().V1().PersistentVolumeClaims(),
		f.Apps().V1().ControllerRevisions(), w.api.Clientset)
	hpas := runHPAs(ctx, w.api.Clientset, f, w.api.scales(w.late), w.keda, w.tol.flag)
	f.Start(ctx.Done())
	running.Go(func() { sets.Run(ctx, 1) })
	running.Go(func() { service.Run(ctx, nil) })
	running.Go(func() { s.Run(ctx) })
	return func() {
		<-hpas
		w.kubelet.hooks.Wait()
		f.Shutdown()
		time.Sleep(2 * time.Minute) // controllers do not wait for a sync that is under way
	}
}

func (w *world) trigger() map[string]string {
	return map[string]string{
		"pool": setName, "targetSessionsPerInstance": fmt.Sprint(perServer), "cooldownWindow": "60s", "emptyDwell": "10s", "startTimeout": "60s",
		"drainGracePeriod": w.drain.String(),
	}
}

// step lets time pass, second by second.
func (w *world) step(d time.Duration) {
	w.t.Helper()
	for range d / time.Second {
		time.Sleep(time.Second)
		synctest.Wait()
		w.kubelet.sync()
		w.app.act()
		w.api.ClearActions()
	}
}

// until lets time pass until it is so, at most for the time given.
func (w *world) until(d time.Duration, what string, so func() bool) {
	w.t.Helper()
	for end := time.Now().Add(d); !so(); {
		if time.Now().After(end) {
			w.t.Fatalf("after %s: not %s; %s", d, what, w)
		}
		w.step(time.Second)
	}
}

// replicas returns spec.replicas and status.replicas.
func (w *world) now() (spec, status int) {
	s, err := w.api.set()
	if err != nil {
		w.t.Fatal(err)
	}
	return int(*s.Spec.Replicas), int(s.Status.Replicas)
}

func (w *world) spec() int { n, _ := w.now(); return n }

// String tells where the pool stands.
func (w *world) String() string {
	spec, status := w.now()
	f, err := w.client.Facts(w.ctx, setName)
	if err != nil {
		return err.Error()
	}
	s := fmt.Sprintf("spec %d, status %d, open rooms %d, waiting %d, plan %+v", spec, status, len(w.app.rooms), w.app.waiting(), f.Plan)
	for _, in := range f.Instances {
		s += fmt.Sprintf("\n%s %s rooms %d marks %v", in.Name, in.State, in.RoomsLeft, in.Marks)
	}
	return s
}

// highest returns the greatest spec.replicas that was written since.
func (w *world) highest(since time.Time) (n int) {
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	for _, s := range w.api.specs {
		if s.at.After(since) {
			n = max(n, s.n)
		}
	}
	return n
}

// wrote reports whether spec.replicas has been set to n, for however short a time.
func (w *world) wrote(n int) bool {
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	return slices.ContainsFunc(w.api.specs, func(s spec) bool { return s.n == n })
}

// handler carries requests to the broker's API without a network.
type handler struct{ http.Handler }

// RoundTrip serves the request before it returns.
func (h handler) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r = r.Clone(r.Context())
		r.Body = http.NoBody
	}
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return answer.Result(), nil
}

// finder lists the pods with an address, terminating ones too.
type finder struct{ api *apiServer }

// Find is broker.Finder's.
func (f finder) Find(ctx context.Context) ([]broker.Found, error) {
	pods, err := f.api.pods(ctx)
	if err != nil {
		return nil, err
	}
	var found []broker.Found
	for i := range pods {
		if pods[i].Status.PodIP == "" {
			continue
		}
		ordinal, _ := broker.OrdinalOf(pods[i].Name)
		found = append(found, broker.Found{Name: pods[i].Name, Ordinal: ordinal, Address: pods[i].Name})
	}
	return found, nil
}
