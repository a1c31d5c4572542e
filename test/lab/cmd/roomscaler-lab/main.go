// Roomscaler-lab demonstrates the product on one machine: see the subcommand demo.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/roomscaler/roomscaler/test/lab/demo"
)

// The exit codes besides 0.
const (
	exitVerdict     = 1 // the demonstration ran, and its verdict is bad
	exitError       = 2 // it did not come to a verdict
	exitInterrupted = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c := &cobra.Command{
		Use:           "roomscaler-lab",
		Short:         "Demonstrations, load and a cluster for Roomscaler",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	c.AddCommand(demoCommand(), simjanusCommand(), clusterCommand())
	c.SetArgs(args)
	c.SetOut(stdout)
	c.SetErr(stderr)
	err := c.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, demo.ErrVerdict):
		return exitVerdict
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "interrupted; everything that was started has ended")
		return exitInterrupted
	}
	fmt.Fprintln(stderr, "roomscaler-lab:", err)
	return exitError
}
