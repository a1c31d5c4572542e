package procs

import (
	"errors"
	"os"
)

// TB is what Need uses of testing.TB.
type TB interface {
	Helper()
	Skip(args ...any)
	Fatal(args ...any)
}

// Need stops the test when err is not nil: it is skipped where the server is not installed, and fails for
// any other error and, if the environment variable CI is set, always.
func Need(t TB, err error) {
	t.Helper()
	switch {
	case err == nil:
	case errors.Is(err, ErrNotInstalled) && os.Getenv("CI") == "":
		t.Skip(err)
	default:
		t.Fatal(err)
	}
}
