// Package e2e tests the program as users run it: real processes, real Redis and real Janus, on
// loopback.
package e2e
