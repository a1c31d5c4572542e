// Package scaler turns a broker's facts into the number of replicas that KEDA hands
// to the Kubernetes autoscaler.
//
// A decision is a stored value: a planner observes the pool, calls the pure function
// [Decide], stores the result at the broker by compare-and-set, and only then does the
// answer change. Any number of replicas may plan, because each of them only repeats
// what is stored, and only for [ServeTTL] after it began to fetch it. Without that
// knowledge the answer is the gRPC status UNAVAILABLE, which the autoscaler takes as
// "leave it as it is"; there is no number that means "unknown".
//
// Where Kubernetes is read ([Cluster]), the law also reckons with the StatefulSet's pods, takes the bounds of the
// ScaledObject, and lowers nothing and ends no release before the API server itself has told spec.replicas. What is
// answered then also depends on the live autoscaler's tolerance: see [Workload.Answer].
//
// Whoever can call this service can scale any pool of its broker: KEDA shows no token, and a caller names the ScaledObject
// and its metadata itself. Client certificates or the network must keep others away.
//
// For each synchronisation of the autoscaler, KEDA calls GetMetricSpec, GetMetrics and
// IsActive in this order, possibly at three different replicas, without a deadline. So
// all of them answer from memory. An error of IsActive would discard a good number;
// GetMetricSpec must succeed even when nothing is known. The target is always 1
// and the value the number of replicas: every other target is rounded somewhere.
package scaler
