package delete

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/packages/choose"
)

// ProviderOptions are the inputs of the command.
type ProviderOptions struct {
	IO         *iostreams.Streams
	Connect    func(management.Kubeconfig) (*management.Cluster, error)
	Kubeconfig management.Kubeconfig
	Selection  choose.Selection
	// All selects all installed providers, instead of Selection.
	All bool
	// IncludeNamespace and IncludeCRDs delete what is kept otherwise.
	IncludeNamespace, IncludeCRDs bool
}

// New returns the command. runF, if not nil, is run instead.
func New(f *factory.Factory, runF func(context.Context, *ProviderOptions) error) *cobra.Command {
	opts := &ProviderOptions{IO: f.IO, Connect: f.Connect}
	cmd := &cobra.Command{
		Use:   "delete",
		Short: "Delete one or more providers from the management cluster, or a workload cluster",
		Long: `Delete one or more providers from the management cluster, or, with the subcommand cluster, a workload cluster.

A provider's namespace and its CustomResourceDefinitions are kept, and with them all Clusters, Machines and other
objects, unless --include-namespace and --include-crd are set. Without their providers no controller reconciles these
objects: delete workload clusters first, or move them, or install the providers again.

Providers that are declared by objects of the operator are deleted with ` + "`clusterctl operator delete`" + `. --all deletes
these, too, and the operator.

The command can safely be run again after an interruption.`,
		Example: `  # Delete a workload cluster and its machines
  clusterctl delete cluster my-cluster

  # Delete an infrastructure provider, but keep its namespace and its CustomResourceDefinitions
  clusterctl delete --infrastructure aws

  # Delete a provider if it has this version
  clusterctl delete --infrastructure aws:v2.4.0

  # Delete a provider with its namespace and its CustomResourceDefinitions
  clusterctl delete --infrastructure aws --include-namespace --include-crd

  # Delete all providers, and the operator if it is installed
  clusterctl delete --all`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.validate(); err != nil {
				return fmt.Errorf("%w: see `%s --help`", err, cmd.CommandPath())
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runProviders(cmd.Context(), opts)
		},
	}
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, false)
	clusterflags.AddProviders(cmd, f, &opts.Kubeconfig, &opts.Selection, "name or name:version")
	cmd.Flags().BoolVar(&opts.All, "all", false, "Delete all providers, and the operator if it is installed")
	cmd.Flags().BoolVar(&opts.IncludeNamespace, "include-namespace", false, "Delete the providers' namespaces, too, with everything in them")
	cmd.Flags().BoolVar(&opts.IncludeCRDs, "include-crd", false,
		"Delete the providers' CustomResourceDefinitions, too. There must be no objects of their kinds")
	return cmd
}

func (o *ProviderOptions) validate() error {
	switch {
	case o.All && !o.Selection.Empty():
		return errors.New("--all deletes all providers: omit the flags of providers, or --all")
	case !o.All && o.Selection.Empty():
		return errors.New("no provider is selected: set --infrastructure or another type of provider, or --all; " +
			"to delete a workload cluster, use `clusterctl delete cluster`")
	}
	return nil
}
