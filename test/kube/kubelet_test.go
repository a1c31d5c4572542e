package kube

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/roomscaler/roomscaler/drainhook"
)

const (
	startDelay = 5 * time.Second // from a pod's creation to its readiness
	hookMargin = 5 * time.Second // by which the hook's grace is shorter than the pod's
)

// kubelet runs all pods: it starts their servers, and for one that is deleted it runs the drain hook before it ends it.
type kubelet struct {
	w     *world
	hooks sync.WaitGroup

	mu     sync.Mutex
	begun  map[types.UID]bool
	ending map[types.UID]bool
	deaths []death
}

// death is the end of a server.
type death struct {
	pod  string
	held time.Duration // since the pod was deleted
	cut  []string      // the rooms in which people were
}

func newKubelet(w *world) *kubelet {
	return &kubelet{w: w, begun: map[types.UID]bool{}, ending: map[types.UID]bool{}}
}

func (k *kubelet) sync() {
	pods, err := k.w.api.pods(k.w.ctx)
	if err != nil {
		k.w.t.Fatal(err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range pods {
		p := &pods[i]
		switch {
		case p.DeletionTimestamp != nil && !k.ending[p.UID]:
			k.ending[p.UID] = true
			begun := k.begun[p.UID]
			k.hooks.Go(func() { k.end(p, begun) })
		case p.DeletionTimestamp == nil && !k.begun[p.UID] && time.Since(p.CreationTimestamp.Time) >= startDelay:
			k.begun[p.UID] = true
			k.begin(p)
		}
	}
}

func (k *kubelet) begin(p *corev1.Pod) {
	k.w.media.start(p.Name)
	yes := true
	if _, err := edit(k.w.api, podResource, p.Name, func(p *corev1.Pod) {
		p.Status.Phase, p.Status.PodIP = corev1.PodRunning, "10.0.0.1"
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "janus", Ready: true, Started: &yes, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}
	}); err != nil {
		k.w.t.Error(err)
	}
}

func (k *kubelet) end(p *corev1.Pod, begun bool) {
	deleted := time.Now()
	if begun && !k.w.noHook {
		ctx, cancel := context.WithTimeout(k.w.ctx, k.w.grace)
		defer cancel()
		c := drainhook.Config{Pool: setName, Instance: p.Name, Grace: k.w.grace - hookMargin, Log: slog.New(slog.DiscardHandler)}
		if _, err := drainhook.Run(ctx, c, k.w.client, local{k.w.media, p.Name}); err != nil && k.w.ctx.Err() == nil && ctx.Err() == nil {
			k.w.t.Error(err)
		}
	}
	if k.w.ctx.Err() != nil {
		return
	}
	time.Sleep(time.Second) // from SIGTERM to the end
	d := death{pod: p.Name, cut: k.w.media.kill(p.Name), held: time.Since(deleted)}
	k.mu.Lock()
	k.deaths = append(k.deaths, d)
	k.mu.Unlock()
	if err := k.w.api.Tracker().Delete(podResource, namespace, p.Name); err != nil {
		k.w.t.Error(err)
	}
}

// ended returns the servers that have ended, and how many rooms that has cut off.
func (k *kubelet) ended() (deaths []death, cut int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, d := range k.deaths {
		cut += len(d.cut)
	}
	return append(deaths, k.deaths...), cut
}
