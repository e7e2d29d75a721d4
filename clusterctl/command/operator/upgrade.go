package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/operator"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/choose"
	"sigs.k8s.io/cluster-api/packages/retry"
)

// UpgradeApplyOptions are the inputs of the command.
type UpgradeApplyOptions struct {
	IO      *iostreams.Streams
	Catalog func(context.Context) (*catalog.Catalog, error)
	Connect func(management.Kubeconfig) (*management.Cluster, error)
	// Clusterctl is the version of clusterctl.
	Clusterctl string
	Kubeconfig management.Kubeconfig
	Selection  choose.Selection
	Request    choose.UpgradeRequest
	// WaitTimeout is in seconds, for the operator and for each provider.
	WaitTimeout int
}

// NewUpgradeApply returns the command. runF, if not nil, is run instead.
func NewUpgradeApply(f *factory.Factory, runF func(context.Context, *UpgradeApplyOptions) error) *cobra.Command {
	opts := &UpgradeApplyOptions{IO: f.IO, Catalog: f.Catalog, Connect: f.Connect, Clusterctl: f.Version.GitVersion}
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Change the versions of declared providers",
		Long: `Change the versions in the objects that declare providers, and wait until the operator has upgraded them: all
of them, and the operator before, to the latest versions of a contract, or some to specific versions.

The core provider is upgraded first. If a new version does not start, the operator rolls back. Releases of
local repositories and of the overrides folder are stored in ConfigMaps.

If a GitOps tool writes the objects, change them in its repository instead.`,
		Example: `  # Upgrade the operator and all providers to the latest versions
  clusterctl operator upgrade apply --contract v1beta1

  # Upgrade some providers to specific versions
  clusterctl operator upgrade apply --core cluster-api:v2.0.0 --infrastructure aws:v2.4.0`,
		Args: clusterflags.NoArgs(""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.complete(); err != nil {
				return fmt.Errorf("%w: see `%s --help`", err, cmd.CommandPath())
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runUpgradeApply(cmd.Context(), opts)
		},
	}
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, false)
	clusterflags.AddProviders(cmd, f, &opts.Kubeconfig, &opts.Selection, "name:version or name:namespace:version")
	cmd.Flags().StringVar(&opts.Request.Contract, "contract", "",
		"Upgrade the operator and all providers to the latest versions of this `contract`, for example v1beta1")
	cmd.Flags().Bool("wait-providers", true,
		"Wait until the upgraded providers are ready. That is always done, because the core provider must be ready before others are upgraded")
	cmd.Flags().IntVar(&opts.WaitTimeout, "wait-provider-timeout", operator.WaitTimeout,
		"How many `seconds` to wait for the operator, and for each provider")
	return cmd
}

// complete checks the flags, and sets the request.
func (o *UpgradeApplyOptions) complete() error {
	switch {
	case o.Request.Contract == "" && o.Selection.Empty():
		return errors.New("nothing is selected: set --contract to upgrade all providers, or --core, --infrastructure or another type of provider")
	case o.Request.Contract != "" && !o.Selection.Empty():
		return errors.New("--contract upgrades all providers: omit the flags of providers, or --contract")
	case o.WaitTimeout <= 0:
		return fmt.Errorf("--wait-provider-timeout is %d: it must be positive", o.WaitTimeout)
	}
	refs, err := operator.References(o.Selection, false)
	if err != nil {
		return err
	}
	o.Request.Selection = selection(refs)
	return o.Request.Check()
}

// selection returns references in the form of choose.UpgradeRequest.
func selection(refs []operator.Reference) choose.Selection {
	s := choose.Selection{}
	lists := s.Lists()
	for _, r := range refs {
		text := r.String()
		if r.Namespace != "" {
			text = r.Namespace + "/" + text
		}
		if list := lists[r.Type]; list != nil {
			*list = append(*list, text)
		} else {
			s.Core = text
		}
	}
	return s
}

func runUpgradeApply(ctx context.Context, opts *UpgradeApplyOptions) error {
	all, err := opts.Catalog(ctx)
	if err != nil {
		return err
	}
	m, err := opts.Connect(opts.Kubeconfig)
	if err != nil {
		return err
	}
	have, err := operator.Require(ctx, m.Client)
	if err != nil {
		return err
	}
	if text := have.Unmatched(opts.Clusterctl); text != "" {
		opts.IO.Warnf("%s", text)
	}
	opts.IO.Infof("Checking the versions of the providers")
	changes, choice, err := operator.PlanUpgrade(ctx, m, all, opts.Request)
	if err != nil {
		return err
	}
	for _, warning := range choice.Warnings {
		opts.IO.Warnf("%s", warning)
	}
	a := &operator.Applier{IO: opts.IO, Client: m.Client, Backoff: retry.Backoff(), Timeout: time.Duration(opts.WaitTimeout) * time.Second}
	replaced := false
	if opts.Request.Contract != "" {
		next, err := operator.Next(ctx, all, have, "")
		if err != nil {
			choice.Left = append(choice.Left, fmt.Errorf("the operator stays at %s: %w", have.Version, err))
		}
		if next != nil {
			replaced = true
			if err := a.Replace(ctx, m, next); err != nil {
				return err
			}
		}
	}
	if len(changes) == 0 && !replaced && len(choice.Left) == 0 {
		opts.IO.Infof("All providers are up to date")
		return nil
	}
	return errors.Join(append([]error{a.Upgrade(ctx, changes)}, choice.Left...)...)
}
