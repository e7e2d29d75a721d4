// Package create is the command `clusterctl create`, which only holds others.
package create

import (
	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/command/create/cluster"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
)

// NewCmd returns the command with its sub-commands.
func NewCmd(f *factory.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "create",
		Short:   "Create workload clusters",
		Long:    "Create workload clusters in a management cluster.",
		Example: "  # A workload cluster, from its template to running machines\n  clusterctl create cluster my-cluster --kubernetes-version v1.29.0",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(cluster.NewCmd(f, nil))
	return cmd
}
