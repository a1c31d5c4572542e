// Package ha holds several replicas of the scaler that are killed all the time to what one would have done: hours of a
// pool's life in a moment, with the real broker, its API and the real planners in one process, and media servers,
// StatefulSet and autoscaler in memory.
package ha
