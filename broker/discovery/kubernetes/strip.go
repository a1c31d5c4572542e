package kubernetes

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What is kept of objects: a namespace may have thousands of pods that are not ours.

func stripMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	kept := metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion, OwnerReferences: m.OwnerReferences}
	if v, ok := m.Labels[indexLabel]; ok {
		kept.Labels = map[string]string{indexLabel: v}
	}
	return kept
}

func stripPod(p *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: stripMeta(p.ObjectMeta),
		Spec:       corev1.PodSpec{NodeName: p.Spec.NodeName},
		Status:     corev1.PodStatus{Phase: p.Status.Phase, PodIP: p.Status.PodIP},
	}
}

func stripSlice(s *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	kept := &discoveryv1.EndpointSlice{ObjectMeta: stripMeta(s.ObjectMeta), Ports: s.Ports, Endpoints: make([]discoveryv1.Endpoint, len(s.Endpoints))}
	for i, e := range s.Endpoints {
		kept.Endpoints[i].TargetRef = e.TargetRef
	}
	return kept
}

func stripNode(n *corev1.Node) *corev1.Node {
	return &corev1.Node{ObjectMeta: stripMeta(n.ObjectMeta), Status: corev1.NodeStatus{Conditions: n.Status.Conditions}}
}
