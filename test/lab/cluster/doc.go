// Package cluster runs a real Kubernetes on this machine without images, registries or a
// container engine: its programs are built from Go modules, once for each version, and
// kept outside the source tree.
//
// [Build] makes the programs. [StartControlPlane] runs etcd, the API server and the
// controller manager as plain processes on loopback: enough for aggregated APIs, the
// horizontal pod autoscaler and StatefulSets, whose pods [ControlPlane.RunPods] declares
// running since there is no node.
package cluster
