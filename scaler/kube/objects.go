package kube

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/roomscaler/roomscaler/scaler"
)

// keeper reduces an object to what is needed of it.
type keeper[T any] = func(old *T, u *unstructured.Unstructured) (T, error)

func read(u *unstructured.Unstructured, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into)
}

// statefulSet is what is needed of one.
type statefulSet struct {
	uid                     string
	replicas, status, start int
	selector                string
	parallel, onDelete      bool
}

func keepStatefulSet(_ *statefulSet, u *unstructured.Unstructured) (statefulSet, error) {
	var s appsv1.StatefulSet
	if err := read(u, &s); err != nil {
		return statefulSet{}, err
	}
	selector, err := metav1.LabelSelectorAsSelector(s.Spec.Selector)
	if err != nil {
		return statefulSet{}, fmt.Errorf("selector: %w", err)
	}
	kept := statefulSet{
		uid: string(s.UID), replicas: 1, status: int(s.Status.Replicas), selector: selector.String(),
		parallel: s.Spec.PodManagementPolicy == appsv1.ParallelPodManagement, onDelete: s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType,
	}
	if s.Spec.Replicas != nil {
		kept.replicas = int(*s.Spec.Replicas)
	}
	if s.Spec.Ordinals != nil {
		kept.start = int(s.Spec.Ordinals.Start)
	}
	return kept, nil
}

// pod is one of the pods that a selector matches. Its ordinal is that of its name.
type pod struct {
	scaler.Pod
	owner   string // uid of its controller
	ordinal int    // -1: it has none
	seen    time.Time
}

func keepPod(old *pod, u *unstructured.Unstructured) (pod, error) {
	var p corev1.Pod
	if err := read(u, &p); err != nil {
		return pod{}, err
	}
	kept := pod{Pod: scaler.Pod{UID: string(p.UID), Terminating: p.DeletionTimestamp != nil}, ordinal: ordinalOf(&p), seen: time.Now()}
	if old != nil && old.UID == kept.UID {
		kept.seen = old.seen
	}
	if c := metav1.GetControllerOf(&p); c != nil {
		kept.owner = string(c.UID)
	}
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady:
			kept.Ready = c.Status == corev1.ConditionTrue
		case c.Type == corev1.PodScheduled:
			kept.Unschedulable = c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
		}
	}
	kept.Started = p.Status.Phase != corev1.PodPending && p.Status.Phase != ""
	for _, c := range p.Status.ContainerStatuses {
		kept.Started = kept.Started || c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil || c.RestartCount > 0
	}
	// Restarts may have been seen only before.
	kept.Started = kept.Started || old != nil && old.UID == kept.UID && old.Started
	return kept, nil
}

// ordinalOf returns the index of a StatefulSet's pod; -1 if it has none. The label is there since Kubernetes 1.28.
func ordinalOf(p *corev1.Pod) int {
	text, ok := p.Labels[appsv1.PodIndexLabel]
	if !ok {
		text = p.Name[strings.LastIndexByte(p.Name, '-')+1:]
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return -1
	}
	return int(n)
}

const (
	// clusterTolerance is the autoscaler's where it says nothing itself.
	clusterTolerance = 0.1
	maxTrouble       = 300
)

func keepAutoscaler(_ *scaler.Autoscaler, u *unstructured.Unstructured) (scaler.Autoscaler, error) {
	var h autoscalingv2.HorizontalPodAutoscaler
	if err := read(u, &h); err != nil {
		return scaler.Autoscaler{}, err
	}
	kept := scaler.Autoscaler{
		Name: h.Name, Minimum: 1, Maximum: int(h.Spec.MaxReplicas), Current: int(h.Status.CurrentReplicas), Desired: int(h.Status.DesiredReplicas),
		ScaleUp: clusterTolerance, ScaleIn: clusterTolerance, WindowMS: -1,
	}
	if h.Spec.MinReplicas != nil {
		kept.Minimum = int(*h.Spec.MinReplicas)
	}
	if b := h.Spec.Behavior; b != nil {
		kept.ScaleUp, kept.ScaleIn = tolerance(b.ScaleUp), tolerance(b.ScaleDown)
		if d := b.ScaleDown; d != nil && d.StabilizationWindowSeconds != nil {
			kept.WindowMS = int64(*d.StabilizationWindowSeconds) * 1000
		}
	}
	var trouble []string
	for _, c := range h.Status.Conditions {
		if c.Type == autoscalingv2.ScalingLimited && c.Status != corev1.ConditionTrue || c.Type != autoscalingv2.ScalingLimited && c.Status == corev1.ConditionTrue {
			continue
		}
		trouble = append(trouble, fmt.Sprintf("%s is %s: %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	kept.Trouble = clip(strings.Join(trouble, "; "), maxTrouble)
	return kept, nil
}

func tolerance(r *autoscalingv2.HPAScalingRules) float64 {
	if r == nil || r.Tolerance == nil {
		return clusterTolerance
	}
	return r.Tolerance.AsApproximateFloat64()
}

// clip cuts a text off before it has more bytes.
func clip(s string, most int) string {
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
