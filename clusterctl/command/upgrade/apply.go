package upgrade

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/choose"
	"sigs.k8s.io/cluster-api/packages/execute"
	"sigs.k8s.io/cluster-api/packages/retry"
)

const defaultWaitTimeout = 300

// ApplyOptions are the inputs of the command.
type ApplyOptions struct {
	Replacing
	Catalog func(context.Context) (*catalog.Catalog, error)
	Request choose.UpgradeRequest
	// WaitTimeout is in seconds, for each Deployment.
	WaitTimeout int
}

// NewApply returns the command. runF, if not nil, is run instead.
func NewApply(f *factory.Factory, runF func(context.Context, *ApplyOptions) error) *cobra.Command {
	opts := &ApplyOptions{Replacing: newReplacing(f), Catalog: f.Catalog}
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Apply new versions of Cluster API core and providers in a management cluster",
		Long: `Upgrade providers of a management cluster: all of them to the latest versions of a contract, or some to
specific versions.

Everything is downloaded and checked before anything is changed. Providers are upgraded one after the other.
The old version runs until the new one is available, so that no request to the API server fails. If the new
version does not become available, the provider is rolled back. CustomResourceDefinitions, namespaces and all
objects of users are kept.

The command can safely be run again after an interruption: it continues. To roll back instead, set
the previous version.`,
		Example: `  # Upgrade all providers to the latest versions
  clusterctl upgrade apply --contract v1beta1

  # Upgrade some providers to specific versions
  clusterctl upgrade apply --core cluster-api:v2.0.0 --infrastructure aws:v2.4.0

  # Wait longer for slow registries
  clusterctl upgrade apply --contract v1beta1 --wait-provider-timeout 900`,
		Args: clusterflags.NoArgs(""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.validate(); err != nil {
				return fmt.Errorf("%w: see `%s --help`", err, cmd.CommandPath())
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runApply(cmd.Context(), opts)
		},
	}
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, false)
	clusterflags.AddProviders(cmd, f, &opts.Kubeconfig, &opts.Request.Selection, "name:version")
	cmd.Flags().StringVar(&opts.Request.Contract, "contract", "",
		"Upgrade all providers to the latest versions of this `contract`, for example v1beta1")
	cmd.Flags().Bool("wait-providers", false, "Wait until the upgraded providers are available. That is always done, "+
		"because each provider must be available before the next one is upgraded")
	cmd.Flags().IntVar(&opts.WaitTimeout, "wait-provider-timeout", defaultWaitTimeout,
		"How many `seconds` to wait for each Deployment before the provider is rolled back")
	return cmd
}

func (o *ApplyOptions) validate() error {
	switch {
	case o.Request.Contract == "" && o.Request.Selection.Empty():
		return errors.New("nothing is selected: set --contract to upgrade all providers, or --core, --infrastructure or another type of provider")
	case o.Request.Contract != "" && !o.Request.Selection.Empty():
		return errors.New("--contract upgrades all providers: omit the flags of providers, or --contract")
	case o.WaitTimeout <= 0:
		return fmt.Errorf("--wait-provider-timeout is %d: it must be positive", o.WaitTimeout)
	}
	return o.Request.Check()
}

func runApply(ctx context.Context, opts *ApplyOptions) error {
	all, err := opts.Catalog(ctx)
	if err != nil {
		return err
	}
	m, held, err := opts.connect(ctx)
	if err != nil {
		return err
	}
	opts.IO.Infof("Checking the versions of the providers")
	u := &execute.Upgrader{
		Display: opts.IO, Client: m.Client, Hold: held.Hold, Backoff: retry.Backoff(), Timeout: time.Duration(opts.WaitTimeout) * time.Second,
		Planner: &choose.UpgradePlanner{Catalog: all, Client: m.Client, Resources: m.Resources},
	}
	return u.Upgrade(ctx, opts.Request)
}
