package upgrade

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/operator"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/retry"
)

// OperatorOptions are the inputs of the command.
type OperatorOptions struct {
	IO      *iostreams.Streams
	Catalog func(context.Context) (*catalog.Catalog, error)
	Connect func(management.Kubeconfig) (*management.Cluster, error)
	// Clusterctl is the version of clusterctl.
	Clusterctl string
	Kubeconfig management.Kubeconfig
	// Version is empty for the latest.
	Version string
	// WaitTimeout is in seconds.
	WaitTimeout int
}

// NewOperator returns the command. runF, if not nil, is run instead.
func NewOperator(f *factory.Factory, runF func(context.Context, *OperatorOptions) error) *cobra.Command {
	opts := &OperatorOptions{IO: f.IO, Catalog: f.Catalog, Connect: f.Connect, Clusterctl: f.Version.GitVersion}
	cmd := &cobra.Command{
		Use:   "operator",
		Short: "Upgrade the operator",
		Long: `Upgrade the operator, which installs the providers that objects declare, to the latest version or a specific one.
The providers stay as they are.

The operator is a file of the core provider's release. Image overrides of the configuration apply to its image, under the
name ` + operator.Name + `. The command can safely be run again after an interruption.`,
		Example: `  # Upgrade the operator to the latest version
  clusterctl upgrade operator

  # Install a specific version
  clusterctl upgrade operator --operator-version v2.1.0`,
		Args: clusterflags.NoArgs(""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.WaitTimeout <= 0 {
				return fmt.Errorf("--wait-provider-timeout is %d: it must be positive: see `%s --help`", opts.WaitTimeout, cmd.CommandPath())
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runOperator(cmd.Context(), opts)
		},
	}
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, false)
	cmd.Flags().StringVar(&opts.Version, "operator-version", "", "The `version` to install. Defaults to the latest one")
	cmd.Flags().IntVar(&opts.WaitTimeout, "wait-provider-timeout", operator.WaitTimeout,
		"How many `seconds` to wait until the operator is available")
	return cmd
}

func runOperator(ctx context.Context, opts *OperatorOptions) error {
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
	next, err := operator.Next(ctx, all, have, opts.Version)
	if err != nil {
		return err
	}
	if next == nil {
		opts.IO.Infof("The operator is up to date: it has version %s", have.Version)
		return nil
	}
	a := &operator.Applier{IO: opts.IO, Client: m.Client, Backoff: retry.Backoff(), Timeout: time.Duration(opts.WaitTimeout) * time.Second}
	return a.Replace(ctx, m, next)
}
