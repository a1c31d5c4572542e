// Command roomscaler-adapter serves the external metrics API of Kubernetes, so that a
// plain HorizontalPodAutoscaler scales a pool where there is no KEDA.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitFailure = 1 // it was attempted and did not succeed
	exitUsage   = 2 // a flag, an argument or a file is wrong
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

// run serves until ctx ends, and returns the exit code. What is wrong is said in one line on stderr.
func run(ctx context.Context, args, env []string, stdout, stderr io.Writer) int {
	o := newOptions()
	c := &cobra.Command{
		Use:   "roomscaler-adapter",
		Short: "Serve the external metrics API with the number of instances",
		Long: `Serve the external metrics API of Kubernetes with the stored number of instances, the
sessions and the rooms of each pool in the file of --config. It decides by the facts of a
broker as the scaler does for KEDA, stores the decision there and answers what is stored.

Each flag can be given in the environment too: --broker-token-file as
ROOMSCALER_BROKER_TOKEN_FILE.`,
		SilenceErrors: true, SilenceUsage: true, DisableSuggestions: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return &usageError{fmt.Errorf("it takes no argument, but got %q; see --help", args[0])}
			}
			return nil
		},
		PreRunE: func(c *cobra.Command, _ []string) error { return setFromEnv(c.Flags(), env) },
		RunE:    func(c *cobra.Command, _ []string) error { return serve(c.Context(), o, stderr) },
	}
	o.flags(c.Flags())
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	c.SetArgs(args)
	c.SetOut(stdout)
	c.SetErr(stderr)
	err := c.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "roomscaler-adapter: "+strings.ReplaceAll(err.Error(), "\n", "; "))
	var usage *usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailure
}

// usageError is about a flag, an argument or a file.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }
