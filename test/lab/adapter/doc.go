// Package adapter tests the metrics adapter where it is to work: behind the aggregation of a real API server, with the real
// controllers of autoscalers and StatefulSets acting on its answers.
package adapter
