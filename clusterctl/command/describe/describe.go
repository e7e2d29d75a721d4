// Package describe is the command `clusterctl describe`, which only holds others.
package describe

import (
	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/command/describe/cluster"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
)

// NewCmd returns the command with its sub-commands.
func NewCmd(f *factory.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "describe",
		Short:   "Describe workload clusters",
		Long:    "Describe the status of workload clusters.",
		Example: "  # The state of workload cluster my-cluster\n  clusterctl describe cluster my-cluster",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(cluster.NewCmd(f, nil))
	return cmd
}
