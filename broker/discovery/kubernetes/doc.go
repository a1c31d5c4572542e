// Package kubernetes has the finder of the pods behind a Service, by watches of the Kubernetes API. It is the only
// package of the broker that knows Kubernetes.
//
// An instance is a Pod of a StatefulSet; its name is the Pod's, its ordinal the Pod's index. It is found from the
// moment it has an address until its Pod object is gone: also while it terminates, while it is not ready, and when
// the Service has dropped it, because people are still in its rooms. A Pod that has ended (Failed, Succeeded) or whose
// place another Pod of the same name has taken is gone.
//
// The broker's service account needs, in the namespace of the Service:
//
//	apiGroups: [""]                  resources: [pods]            verbs: [get, list, watch]
//	apiGroups: ["discovery.k8s.io"]  resources: [endpointslices]  verbs: [get, list, watch]
//
// and, to end the rooms of a machine that has failed without waiting for its Pods to be deleted, in the cluster:
//
//	apiGroups: [""]                  resources: [nodes]           verbs: [get, list, watch]
//
// Without the last one everything else works.
package kubernetes
