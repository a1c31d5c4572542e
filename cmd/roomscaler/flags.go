package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/roomscaler/roomscaler/broker"
)

const envPrefix = "ROOMSCALER_"

// envName is the twin of a flag in the environment.
func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// setFromEnv sets the flags that were not given from their twins.
func setFromEnv(flags *pflag.FlagSet, env []string) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		name := envName(f.Name)
		i := slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		if f.Changed || i < 0 || f.Name == "help" {
			return
		}
		if err := flags.Set(f.Name, strings.TrimPrefix(env[i], name+"=")); err != nil {
			errs = append(errs, usage(fmt.Errorf("%s: %s", name, wrongValue(f, strings.TrimPrefix(env[i], name+"=")))))
		}
	})
	return errors.Join(errs...)
}

// flagError says what is wrong with a flag in one line with the remedy.
func flagError(command string, err error) error {
	var value *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &value):
		err = fmt.Errorf("--%s: %s", value.GetFlag().Name, wrongValue(value.GetFlag(), value.GetValue()))
	case errors.As(err, &missing):
		err = fmt.Errorf("--%s: has no value; give one as --%s=VALUE", missing.GetSpecifiedName(), missing.GetSpecifiedName())
	case errors.As(err, &unknown):
		err = fmt.Errorf("--%s: there is no such flag; see %s --help", unknown.GetSpecifiedName(), command)
	}
	return usage(err)
}

func wrongValue(f *pflag.Flag, value string) string {
	want := "give " + f.Value.Type()
	switch f.Value.Type() {
	case "duration":
		want = "give a duration such as 5s or 1h30m"
	case "int":
		want = "give a whole number"
	case "bool":
		want = "give true or false"
	}
	return fmt.Sprintf("%q is not understood; %s", clip(value), want)
}

// asFlag says an error about a field as one about the flag of the same name; other errors stay.
func asFlag(err error) error {
	var wrong *broker.InvalidError
	if errors.As(err, &wrong) {
		return usage(fmt.Errorf("--%s: %s", wrong.Field, wrong.Want))
	}
	return err
}

func usage(err error) error { return &exitError{code: exitUsage, err: err} }

func wrong(flag, format string, v ...any) error {
	return usage(fmt.Errorf("--"+flag+": "+format, v...))
}

func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage(fmt.Errorf("%s takes no argument, but got %q; see %s --help", c.CommandPath(), clip(args[0]), c.CommandPath()))
	}
	return nil
}

func clip(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}
