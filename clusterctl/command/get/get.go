// Package get is the command `clusterctl get`, which only holds others.
package get

import (
	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/command/get/kubeconfig"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
)

// NewCmd returns the command with its sub-commands.
func NewCmd(f *factory.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "get",
		Short:   "Get info from a management or a workload cluster",
		Long:    "Get information from a management or a workload cluster.",
		Example: "  # The kubeconfig of workload cluster my-cluster\n  clusterctl get kubeconfig my-cluster",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(kubeconfig.NewCmd(f, nil))
	return cmd
}
