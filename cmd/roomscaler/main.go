// Command roomscaler is the broker, the scaler and the drain hook in one binary.
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

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	redis.SetLogger(silent{})
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr))
}

// silent drops what go-redis would print besides the errors that it returns: those are reported where they matter.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// run runs one subcommand until it is done or ctx ends, and returns the exit code. What is wrong is said in one line on stderr.
func run(ctx context.Context, args, env []string, stdout, stderr io.Writer) int {
	root := rootCommand(env)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "roomscaler: "+strings.ReplaceAll(err.Error(), "\n", "; "))
	var exit *exitError
	if errors.As(err, &exit) {
		return exit.code
	}
	return exitFailure
}

func rootCommand(env []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "roomscaler",
		Short: "Autoscale pools of stateful media servers without dropping a call",
		Long: `Autoscale pools of stateful media servers without dropping a call.

Each flag can be given in the environment too: --sweep-interval as
ROOMSCALER_SWEEP_INTERVAL. A flag goes before the environment, and that before a
configuration file.`,
		SilenceErrors: true, SilenceUsage: true, DisableSuggestions: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage(fmt.Errorf("there is no command %q; see roomscaler --help", clip(args[0])))
			}
			return nil
		},
		RunE:              func(c *cobra.Command, _ []string) error { return c.Help() },
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return setFromEnv(c.Flags(), env) },
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return flagError(c.CommandPath(), err) })
	for _, c := range []*cobra.Command{brokerCommand(), scalerCommand(), serveCommand(), drainhookCommand(), explainCommand(), versionCommand()} {
		c.Args = noArgs
		root.AddCommand(c)
	}
	return root
}
