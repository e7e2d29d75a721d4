// Package command is the command line of capi. It parses and checks flags, and says what happened; the work is done
// by the packages beside it.
package command

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sigs.k8s.io/cluster-api/provider/version"
	"sigs.k8s.io/cluster-api/standalone/internal/controlplane"
	"sigs.k8s.io/cluster-api/standalone/internal/host"
)

// New makes the root command for a program that hosts these components. Its output goes where the command's streams
// point; nothing here exits the process.
func New(components map[string]host.Program) *cobra.Command {
	root := &cobra.Command{
		Use:   "capi",
		Short: "A Cluster API management cluster in one program",
		Long: `capi runs a management cluster for Cluster API in one process: storage, API server and the provider
components. It needs no container runtime and no other cluster.`,
		Example: `  # Run a management cluster in the foreground and use it from another terminal
  capi serve --data-dir ./mgmt
  capi kubectl --kubeconfig ./mgmt/kubeconfig get namespaces`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())
	})
	root.AddCommand(newServe(components), newVersion(), newKubectl())
	// A library of Kubernetes registers --version forevery program it is part of, and nothing here heeds it.
	_ = pflag.CommandLine.MarkHidden("version") // Not there is hidden enough.
	return root
}

// newVersion makes `capi version`.
func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of capi and of the Kubernetes API that it serves",
		Example: `  capi version`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			own := version.Get()
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "capi %s (commit %s, %s, %s), Kubernetes %s\n",
				own.GitVersion, own.GitCommit, own.GoVersion, own.Platform, controlplane.Version())
			return err
		},
	}
}
