// Package backendtest is the contract of broker.Backend as a suite of tests that every backend runs against its
// real server, and [Faulty], which puts faults between a backend and a real server that is reached over HTTP.
package backendtest
