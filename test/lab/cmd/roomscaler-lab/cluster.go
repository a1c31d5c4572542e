package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

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
	c.AddCommand(clusterBuildCommand(dir), clusterUpCommand(dir), clusterHoldCommand(dir), clusterDownCommand(dir))
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

const hpaSyncFlag = "hpa-sync"

func clusterUpCommand(dir *string) *cobra.Command {
	var (
		plane   bool
		hpaSync time.Duration
	)
	c := &cobra.Command{
		Use:   "up",
		Short: "Start a control plane on loopback that goes on until it is told to end",
		Long: `Start etcd, an API server and a controller manager on loopback, built first where the cache
lacks them. There is no node and nothing runs in pods: each is declared running and ready.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !plane {
				return errors.New("nodes are not offered: give --control-plane")
			}
			cache, err := cluster.OpenCache(*dir)
			if err != nil {
				return err
			}
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("finding this program: %w", err)
			}
			hold := []string{self, "cluster", "hold", "--cache", *dir, "--" + hpaSyncFlag, hpaSync.String()}
			if err := cluster.Up(cmd.Context(), cache, cmd.OutOrStdout(), hold); err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "export KUBECONFIG="+cache.KubeconfigPath())
			return err
		},
	}
	c.Flags().BoolVar(&plane, "control-plane", false, "a control plane without nodes")
	c.Flags().DurationVar(&hpaSync, hpaSyncFlag, 15*time.Second, "how often horizontal pod autoscalers are looked at")
	return c
}

// clusterHoldCommand is the process behind up.
func clusterHoldCommand(dir *string) *cobra.Command {
	var hpaSync time.Duration
	c := &cobra.Command{
		Use:    "hold",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cache, err := cluster.OpenCache(*dir)
			if err != nil {
				return err
			}
			return cluster.Hold(cmd.Context(), cache, hpaSync)
		},
	}
	c.Flags().DurationVar(&hpaSync, hpaSyncFlag, 15*time.Second, "how often horizontal pod autoscalers are looked at")
	return c
}

func clusterDownCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "End what up has started; what has been built stays",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cache, err := cluster.OpenCache(*dir)
			if err != nil {
				return err
			}
			return cluster.Down(cmd.Context(), cache)
		},
	}
}
