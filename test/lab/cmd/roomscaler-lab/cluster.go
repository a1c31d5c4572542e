package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/roomscaler/roomscaler/test/lab/cluster"
)

// clusterCommand builds and runs a real Kubernetes on this machine.
func clusterCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "cluster",
		Short: "Build and run a real Kubernetes on this machine",
		Args:  cobra.NoArgs,
	}
	dir := c.PersistentFlags().String("cache", "", "folder of built programs (default: roomscaler/cluster in the user's cache folder)")
	c.AddCommand(clusterBuildCommand(dir))
	return c
}

func clusterBuildCommand(dir *string) *cobra.Command {
	var known []string
	for _, comp := range cluster.Components() {
		known = append(known, comp.Name)
	}
	return &cobra.Command{
		Use:   "build [component...]",
		Short: "Build what the cache lacks of the components, all if none is named",
		Long:  "Build what the cache lacks of the components, all if none is named: " + strings.Join(known, ", ") + ".",
		RunE: func(cmd *cobra.Command, args []string) error {
			cache, err := cluster.OpenCache(*dir)
			if err != nil {
				return err
			}
			return cluster.Build(cmd.Context(), cache, cmd.OutOrStdout(), args...)
		},
	}
}
