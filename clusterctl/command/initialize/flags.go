package initialize

import (
	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
)

const defaultWaitTimeout = 300

// addFlags adds the flags; those that select providers also apply to list-images.
func addFlags(cmd *cobra.Command, f *factory.Factory, opts *Options) {
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, true)
	clusterflags.AddKnownProviders(cmd, f, &opts.Selection, "name or name:version", true)
	cmd.Flags().StringVarP(&opts.TargetNamespace, "target-namespace", "n", "",
		"The `namespace` to install all providers into. Each provider has a default namespace of its own")
	clusterflags.CompleteNamespaces(cmd, f, &opts.Kubeconfig, "target-namespace")
	cmd.Flags().BoolVar(&opts.Wait, "wait-providers", false, "Wait until the providers are available")
	cmd.Flags().IntVar(&opts.WaitTimeout, "wait-provider-timeout", defaultWaitTimeout,
		"How many `seconds` to wait for each provider; requires --wait-providers")
	cmd.Flags().BoolVar(&opts.Validate, "validate", true, "Reject incompatible providers; if false, only warn")
}
