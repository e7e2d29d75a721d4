// Package delete is the command `clusterctl delete`, which only holds others.
package delete

import (
	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/command/delete/cluster"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
)

// NewCmd returns the command with its sub-commands.
func NewCmd(f *factory.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "delete",
		Short:   "Delete workload clusters",
		Long:    "Delete workload clusters with everything that belongs to them.",
		Example: "  # Delete a workload cluster and its machines\n  clusterctl delete cluster my-cluster",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(cluster.NewCmd(f, nil))
	return cmd
}
