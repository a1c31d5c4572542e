// Package kube tells the scaler what Kubernetes knows of a ScaledObject: the StatefulSet that it scales, its pods, and
// the HorizontalPodAutoscaler that KEDA has made. It is the only package of the scaler that knows Kubernetes.
//
// Everything is read by watches of just these objects, begun at the first call for a ScaledObject and ended when
// nobody has asked for ten minutes. While one of the watches fails, or has not begun, nothing is known. Ages are counted
// by this process, from when it first saw a pod; no time that another machine has noted is used.
//
// The only things that are written are Events at the ScaledObject. In the namespace of its ScaledObjects the scaler's
// service account needs:
//
//	apiGroups: [keda.sh]      resources: [scaledobjects]             verbs: [get, list, watch]
//	apiGroups: [apps]         resources: [statefulsets]              verbs: [get, list, watch]
//	apiGroups: [""]           resources: [pods]                      verbs: [list, watch]
//	apiGroups: [autoscaling]  resources: [horizontalpodautoscalers]  verbs: [list, watch]
//	apiGroups: [""]           resources: [events]                    verbs: [create]
//
// ScaledObjects, StatefulSets and autoscalers are listed and watched by name, so the rules may be narrowed by
// resourceNames. Without the last rule everything else works.
package kube
