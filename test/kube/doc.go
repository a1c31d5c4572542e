// Package kube drives the scaler by the controllers of Kubernetes themselves: the HorizontalPodAutoscaler and the
// StatefulSet controller of k8s.io/kubernetes, over client-go's API server in memory and in the time of a synctest
// bubble. Broker, drain hook and scaler are the product's own code; models are only what stands for kubelets, media
// servers, and KEDA's conversion of an answer.
//
// There is one module file for each version of Kubernetes: go.mod (1.37), and those that -modfile takes. The versions
// build only with client-go of their own, which is why the scaler's eye on Kubernetes is one of this package.
//
// With KUBE_LOG set the scaler and the controllers log.
package kube
