package initialize

import (
	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/internal/distribution"
)

const defaultWaitTimeout = 300

// addFlags adds the flags; those that select providers also apply to list-images.
func addFlags(cmd *cobra.Command, f *factory.Factory, opts *Options) {
	s := &opts.Selection
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, true)
	flags := cmd.PersistentFlags()
	flags.StringVar(&s.Core, "core", "", "Core `provider`, as cluster-api:version. The first run defaults to the latest version")
	flags.StringSliceVarP(&s.Infrastructure, "infrastructure", "i", nil, "Comma-separated infrastructure `providers`, as name or name:version")
	flags.StringSliceVarP(&s.Bootstrap, "bootstrap", "b", nil, "Bootstrap `providers`. The first run defaults to kubeadm; use - for none")
	flags.StringSliceVarP(&s.ControlPlane, "control-plane", "c", nil, "Control plane `providers`. The first run defaults to kubeadm; use - for none")
	flags.StringSliceVar(&s.IPAM, "ipam", nil, "IPAM `providers`")
	flags.StringSliceVar(&s.RuntimeExtension, "runtime-extension", nil, "Runtime extension `providers`")
	flags.StringSliceVar(&s.Addon, "addon", nil, "Add-on `providers`")
	for _, t := range distribution.Types() {
		clusterflags.CompleteProviders(cmd, f, distribution.Word(t), t)
	}
	cmd.Flags().StringVarP(&opts.TargetNamespace, "target-namespace", "n", "", "The `namespace` to install all providers into. Each provider has a default namespace of its own")
	clusterflags.CompleteNamespaces(cmd, f, &opts.Kubeconfig, "target-namespace")
	cmd.Flags().BoolVar(&opts.Wait, "wait-providers", false, "Wait until the providers are available")
	cmd.Flags().IntVar(&opts.WaitTimeout, "wait-provider-timeout", defaultWaitTimeout, "How many `seconds` to wait for each provider; requires --wait-providers")
	cmd.Flags().BoolVar(&opts.Validate, "validate", true, "Reject incompatible providers; if false, only warn")
}
