package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/operator"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/choose"
	"sigs.k8s.io/cluster-api/packages/retry"
)

// DeleteOptions are the inputs of the command.
type DeleteOptions struct {
	IO         *iostreams.Streams
	Connect    func(management.Kubeconfig) (*management.Cluster, error)
	Kubeconfig management.Kubeconfig
	// Core selects the core provider, Selection all others.
	Core      bool
	Selection choose.Selection
	Deletion  operator.Deletion
	// WaitTimeout is in seconds, for each provider.
	WaitTimeout int
}

// NewDelete returns the command. runF, if not nil, is run instead.
func NewDelete(f *factory.Factory, runF func(context.Context, *DeleteOptions) error) *cobra.Command {
	opts := &DeleteOptions{IO: f.IO, Connect: f.Connect}
	cmd := &cobra.Command{
		Use:   "delete",
		Short: "Delete declared providers, and the operator",
		Long: `Delete the objects that declare providers, and wait until the operator has deleted the providers.

A provider's namespace and its CustomResourceDefinitions are kept, and with them all objects of users, unless
--include-namespace and --include-crd are set. A provider that a Cluster needs is not deleted, and the core provider only
after all others. With --all, the operator is deleted, too.

The command can safely be run again after an interruption.`,
		Example: `  # Delete an infrastructure provider
  clusterctl operator delete --infrastructure aws

  # Delete one in a namespace, with the namespace and its CustomResourceDefinitions
  clusterctl operator delete --infrastructure aws:capa-system --include-namespace --include-crd

  # Delete all providers, and the operator
  clusterctl operator delete --all`,
		Args: clusterflags.NoArgs(""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.complete(); err != nil {
				return fmt.Errorf("%w: see `%s --help`", err, cmd.CommandPath())
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runDelete(cmd.Context(), opts)
		},
	}
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, false)
	addFlags(cmd, f, opts)
	return cmd
}

func addFlags(cmd *cobra.Command, f *factory.Factory, opts *DeleteOptions) {
	const form = " `providers`, as name or name:namespace"
	flags, s := cmd.Flags(), &opts.Selection
	flags.BoolVar(&opts.Core, "core", false, "Delete the core provider")
	flags.StringSliceVarP(&s.Infrastructure, "infrastructure", "i", nil, "Comma-separated infrastructure"+form)
	flags.StringSliceVarP(&s.Bootstrap, "bootstrap", "b", nil, "Bootstrap"+form)
	flags.StringSliceVarP(&s.ControlPlane, "control-plane", "c", nil, "Control plane"+form)
	flags.StringSliceVar(&s.IPAM, "ipam", nil, "IPAM"+form)
	flags.StringSliceVar(&s.RuntimeExtension, "runtime-extension", nil, "Runtime extension"+form)
	flags.StringSliceVar(&s.Addon, "addon", nil, "Add-on"+form)
	for _, t := range packages.Types()[1:] {
		clusterflags.CompleteInstalled(cmd, f, &opts.Kubeconfig, t)
	}
	flags.BoolVar(&opts.Deletion.All, "all", false, "Delete all declared providers, and the operator")
	flags.BoolVar(&opts.Deletion.Namespace, "include-namespace", false, "Delete the providers' namespaces, too, with everything in them")
	flags.BoolVar(&opts.Deletion.CRDs, "include-crd", false,
		"Delete the providers' CustomResourceDefinitions, too. There must be no objects of their kinds")
	flags.IntVar(&opts.WaitTimeout, "wait-provider-timeout", operator.WaitTimeout,
		"How many `seconds` to wait for the deletion of each provider")
}

// complete checks the flags, and sets the references.
func (o *DeleteOptions) complete() error {
	if o.Core {
		o.Selection.Core = clusterctlv1.ClusterAPIProviderName
	}
	switch {
	case o.Deletion.All && !o.Selection.Empty():
		return errors.New("--all deletes all providers: omit the flags of providers, or --all")
	case !o.Deletion.All && o.Selection.Empty():
		return errors.New("no provider is selected: set --infrastructure or another type of provider, or --all")
	case o.WaitTimeout <= 0:
		return fmt.Errorf("--wait-provider-timeout is %d: it must be positive", o.WaitTimeout)
	}
	refs, err := operator.References(o.Selection, false)
	for _, r := range refs {
		if r.Version != "" {
			return fmt.Errorf("--%s: %s is deleted in whatever version it has: omit %s", packages.Word(r.Type), r.Name, r.Version)
		}
	}
	o.Deletion.References = refs
	return err
}

func runDelete(ctx context.Context, opts *DeleteOptions) error {
	m, err := opts.Connect(opts.Kubeconfig)
	if err != nil {
		return err
	}
	plan, err := operator.PlanDeletion(ctx, m, opts.Deletion)
	if err != nil {
		return err
	}
	if plan.IsEmpty() {
		opts.IO.Infof("No provider is declared, and the operator is not installed")
		return nil
	}
	a := &operator.Applier{IO: opts.IO, Client: m.Client, Backoff: retry.Backoff(), Timeout: time.Duration(opts.WaitTimeout) * time.Second}
	return a.Delete(ctx, plan)
}
