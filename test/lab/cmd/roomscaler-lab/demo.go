package main

import (
	"github.com/spf13/cobra"

	"github.com/roomscaler/roomscaler/test/lab/demo"
)

func demoCommand() *cobra.Command {
	o := demo.DefaultOptions()
	simulated := false
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show a pool that grows under load and shrinks without cutting a room",
		Long: `Starts media servers under a supervisor that behaves like a StatefulSet, brokers, the
scaler, and a loop that asks it as KEDA and the HPA do; lets people come and go; and
shows what happens. Nothing is left behind.

Exit codes: 0 no room was cut by scale-in, and the pool grew to four instances or more and
came back to two; 1 the verdict is bad; 2 the demonstration failed; 130 it was interrupted.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if simulated {
				o.Media = demo.Simulated
			}
			return demo.Run(c.Context(), o, c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.Uint64Var(&o.Seed, "seed", o.Seed, "seed of the load: the same seed gives the same rooms")
	f.Float64Var(&o.Scale, "duration-scale", o.Scale, "stretches the load's times and the cool-down")
	f.IntVar(&o.Rooms, "rooms", o.Rooms, "rooms open at the peak, of three people each on average")
	f.BoolVar(&o.Compare, "compare", o.Compare, "run the same load beside it with a naive scaler")
	f.StringVar((*string)(&o.Media), "janus", string(o.Media), "media servers: auto, real or simulated")
	f.BoolVar(&simulated, "simulated", false, "same as --janus simulated")
	f.StringVar(&o.Report, "report", o.Report, "file of the HTML report; empty for none")
	f.StringVar(&o.KeepLogs, "keep-logs", o.KeepLogs, "folder that keeps the logs of all processes; default: kept only after a failure")
	f.Float64Var(&o.Tolerance, "tolerance", o.Tolerance, "tolerance of the HPA, both ways; a cluster's default is 0.1")
	f.StringVar(&o.Program, "roomscaler", o.Program, "a built roomscaler; default: built from the source around the working folder")
	return c
}
