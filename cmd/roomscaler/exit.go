package main

// Exit codes that all subcommands share.
const (
	exitFailure = 1 // it was attempted and did not succeed
	exitUsage   = 2 // a flag, an argument or a configuration file is wrong
)

// exitError is an error with the exit code that it ends the process with.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }
