package initialize

import (
	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/internal/distribution"
)

const defaultWaitTimeout = 300

// addFlags adds the flags; those that say what would be installed also apply to list-images.
func addFlags(cmd *cobra.Command, f *factory.Factory, opts *Options) {
	s := &opts.Selection
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, true)
	flags := cmd.PersistentFlags()
	flags.StringVar(&s.Core, "core", "", "Core `provider`, as cluster-api:version. Empty means the latest version on the first run")
	flags.StringSliceVarP(&s.Infrastructure, "infrastructure", "i", nil, "Infrastructure `providers`, as name or name:version, separated by commas")
	flags.StringSliceVarP(&s.Bootstrap, "bootstrap", "b", nil, "Bootstrap `providers`. Empty means kubeadm on the first run, - none")
	flags.StringSliceVarP(&s.ControlPlane, "control-plane", "c", nil, "Control plane `providers`. Empty means kubeadm on the first run, - none")
	flags.StringSliceVar(&s.IPAM, "ipam", nil, "IPAM `providers`")
	flags.StringSliceVar(&s.RuntimeExtension, "runtime-extension", nil, "Runtime extension `providers`")
	flags.StringSliceVar(&s.Addon, "addon", nil, "Add-on `providers`")
	for _, t := range distribution.Types() {
		clusterflags.CompleteProviders(cmd, f, distribution.Word(t), t)
	}
	cmd.Flags().StringVarP(&opts.TargetNamespace, "target-namespace", "n", "", "The `namespace` of all providers of this call. Empty means each one's own")
	clusterflags.CompleteNamespaces(cmd, f, &opts.Kubeconfig, "target-namespace")
	cmd.Flags().BoolVar(&opts.Wait, "wait-providers", false, "Return when the providers are available")
	cmd.Flags().IntVar(&opts.WaitTimeout, "wait-provider-timeout", defaultWaitTimeout, "How many `seconds` to wait for each provider; needs --wait-providers")
	cmd.Flags().BoolVar(&opts.Validate, "validate", true, "Refuse providers that do not fit; with false only warn")
}
