// Package generate is the command `clusterctl generate`, which only holds others.
package generate

import (
	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/command/generate/cluster"
	"sigs.k8s.io/cluster-api/clusterctl/command/generate/provider"
	"sigs.k8s.io/cluster-api/clusterctl/command/generate/yaml"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
)

// NewCmd returns the command with its sub-commands.
func NewCmd(f *factory.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "generate",
		Short:   "Generate yaml using clusterctl yaml processor",
		Long:    "Generate YAML from templates by replacing their variables.",
		Example: "  # The YAML of a workload cluster\n  clusterctl generate cluster my-cluster --kubernetes-version v1.29.0",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(cluster.NewCmd(f, nil), provider.NewCmd(f, nil), yaml.NewCmd(f, nil))
	return cmd
}
