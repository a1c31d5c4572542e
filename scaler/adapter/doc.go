// Package adapter gives a plain HorizontalPodAutoscaler what KEDA would give it: the
// stored number of instances of a pool, as a metric of the external metrics API.
//
// The number is asked of a [scaler.Scaler] in the way that KEDA asks, so there is one
// control law, one stored decision and one rule for what may be answered. What is not
// known is an error, which leaves the replicas as they are, and never a number.
package adapter
