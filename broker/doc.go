// Package broker is the core of the media resource broker: it owns the directory
// room -> instance, the choice of instance, the marks that keep an instance from
// taking rooms, and the facts from which a scaler computes a number of replicas.
//
// It is built of values and decisions and imports the standard library alone,
// without net/http and os. What it needs of the world it asks for through three
// interfaces: [Store] (what must be remembered), [Backend] (what a media server can
// do) and [Finder] (which instances there are).
//
// # Time
//
// All stored times are [PoolTime]: milliseconds of a clock that the store keeps for
// each pool and that advances with the store's own clock, each step capped at two
// sweeps. A duration is the difference of two PoolTimes of one pool, so a wall clock
// that jumps, or hours in which no broker ran, end nothing early.
//
// # Guarantees
//
// The guarantees G1-G8 that tests are named after are written down in
// docs/architecture.md.
package broker
