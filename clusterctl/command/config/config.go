// Package config is the command `clusterctl config`, which only holds others.
package config

import (
	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/command/config/repositories"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
)

// NewCmd returns the command with its sub-commands.
func NewCmd(f *factory.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Display clusterctl configuration",
		Long:    "Display what the configuration file, the environment and the defaults amount to.",
		Example: "  # The providers that can be installed, and where they are published\n  clusterctl config repositories",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(repositories.NewCmd(f, nil))
	return cmd
}
