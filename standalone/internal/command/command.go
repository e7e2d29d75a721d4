// Package command is the command line of capi: it parses and validates flags, and prints results. Other packages do the
// work.
package command

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	docs "sigs.k8s.io/cluster-api/docs/command"
	"sigs.k8s.io/cluster-api/sdk/version"
	"sigs.k8s.io/cluster-api/standalone/internal/controlplane"
	"sigs.k8s.io/cluster-api/standalone/internal/host"
)

// New returns the root command of a program that hosts these components. It prints to the command's streams, and never
// exits the process. pages returns the generated pages of the book; it may be nil.
func New(components map[string]host.Program, pages docs.Pages) *cobra.Command {
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
	root.AddCommand(
		newServe(components), newBackup(), newRestore(), newTakeover(components),
		docs.New("capi docs", version.Get(), pages, nil), newVersion(), newKubectl(os.Args),
	)
	// A Kubernetes library registers --version in every program, but it has no effect here.
	_ = pflag.CommandLine.MarkHidden("version") // fails if there is no such flag, which is fine
	return root
}

// newVersion returns `capi version`.
func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of capi and of Kubernetes",
		Example: `  capi version`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s, Kubernetes %s\n", version.Get().Sentence("capi"), controlplane.Version())
			return err
		},
	}
}
