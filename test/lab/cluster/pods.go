package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const podsEvery = 250 * time.Millisecond

// RunPods declares every pod of a namespace running and ready, as a kubelet would that finds nothing wrong, and tells seen
// the names of those that are there whenever it has looked. Nothing runs: what a pod stands for is up to seen. A pod that
// is deleted is gone at once, because it has no node. RunPods ends with ctx; a failed look is the next one's matter.
func (c *ControlPlane) RunPods(ctx context.Context, namespace string, seen func(names []string)) error {
	k, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	tick := time.NewTicker(podsEvery)
	defer tick.Stop()
	for {
		if list, err := k.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{}); err == nil {
			names := make([]string, 0, len(list.Items))
			for i := range list.Items {
				names = append(names, list.Items[i].Name)
				declare(ctx, k, &list.Items[i])
			}
			seen(names)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// declare writes the status of a pod that runs, unless it has that. One that cannot be written is tried again.
func declare(ctx context.Context, k kubernetes.Interface, p *corev1.Pod) {
	if p.Status.Phase == corev1.PodRunning || p.DeletionTimestamp != nil {
		return
	}
	now := metav1.Now()
	p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &now
	p.Status.ContainerStatuses = nil
	for _, container := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	p.Status.Conditions = nil
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	_, _ = k.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, p, metav1.UpdateOptions{})
}
