// Package procs starts the real servers that tests and the lab run against: Janus
// and Redis, as child processes on loopback. It is built on the standard library alone.
//
// A child does not outlive the process that started it (on Linux), and stands in
// a process group of its own, so that an interrupt typed at a terminal reaches
// only the parent.
package procs
