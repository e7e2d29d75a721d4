// Package takeover has the command `clusterctl takeover handback`.
package takeover

import (
	"context"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/takeover"
)

// Options are the inputs of the command.
type Options struct {
	IO         *iostreams.Streams
	Connect    func(management.Kubeconfig) (*management.Cluster, error)
	Kubeconfig management.Kubeconfig
	// To is the version that takes over, such as v1.7.9.
	To string
	// DryRun prints what would be done.
	DryRun bool
}

// NewHandback returns the command. runF, if not nil, is run instead.
func NewHandback(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{IO: f.IO, Connect: f.Connect}
	cmd := &cobra.Command{
		Use:   "handback --to VERSION",
		Short: "Prepare a management cluster for the managers of another version of Cluster API",
		Long: `Remove what another version of Cluster API, from v1.7 to v1.14, would wait for without knowing it: finalizers and hooks that keep
objects in deletion forever. Nothing else changes, and no Machine is replaced.

The managers of this version have to run meanwhile, because their webhooks check each change. Then stop them, and run the command
again: it reports what they have added since. What the other version cannot continue, such as an update in place, or cannot read, is an
error, and then nothing is changed.`,
		Example: `  # Show what v1.7.9 does not know
  clusterctl takeover handback --to v1.7.9 --dry-run

  # Hand back, stop the managers, check that nothing was added meanwhile, and start those of v1.7.9
  clusterctl takeover handback --to v1.7.9
  kubectl scale deployments --namespace capi-system --all --replicas 0
  clusterctl takeover handback --to v1.7.9`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.To == "" {
				return fmt.Errorf("--to is required, the version that takes over, such as v1.7.9: see `%s --help`", cmd.CommandPath())
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
	}
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, false)
	cmd.Flags().StringVar(&opts.To, "to", "", "The `version` of Cluster API that takes over, such as v1.7.9")
	cmd.Flags().BoolVar(&opts.DryRun, "dry-run", false, "Print what would be removed, and change nothing")
	return cmd
}

func run(ctx context.Context, opts *Options) error {
	to, err := takeover.Target(opts.To)
	if err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	m, err := opts.Connect(opts.Kubeconfig)
	if err != nil {
		return err
	}
	if err := m.CheckContract(ctx); err != nil {
		return err
	}
	if m, err = m.Unlimited(); err != nil {
		return err
	}
	return handBack(ctx, opts, m.Client, to)
}

// handBack reads, changes and reads again.
func handBack(ctx context.Context, opts *Options, c client.Client, to semver.Version) error {
	objects, err := takeover.Read(ctx, c, func(n int) { opts.IO.Logf(1, "%d objects read", n) })
	if err != nil {
		return err
	}
	plan := takeover.HandBack(to, objects)
	if len(plan.Obstacles) > 0 {
		return fmt.Errorf("nothing is changed, because v%s cannot take over yet:\n  %s", to, strings.Join(plan.Obstacles, "\n  "))
	}
	if opts.DryRun {
		for _, change := range plan.Changes {
			_, _ = fmt.Fprintln(opts.IO.Out, change)
		}
		opts.IO.Infof("%d of %d objects would be changed", len(plan.Changes), len(objects.Metadata))
		return nil
	}
	progress := func(n int) {
		if n%100 == 0 {
			opts.IO.Infof("%d of %d objects changed", n, len(plan.Changes))
		}
	}
	if len(plan.Changes) == 0 {
		opts.IO.Infof("None of %d objects has what v%s does not know: its managers can start when those of this version have stopped",
			len(objects.Metadata), to)
		return nil
	}
	if err := takeover.Apply(ctx, c, to, plan, progress); err != nil {
		return fmt.Errorf("%w\n%s", err, advice(err))
	}
	if err := verify(ctx, opts, c, to); err != nil {
		return err
	}
	opts.IO.Infof("%d of %d objects changed: stop the managers of this version, and run the command again to check that nothing was added "+
		"meanwhile", len(plan.Changes), len(objects.Metadata))
	return nil
}

// advice returns what to do about an object that could not be changed.
func advice(err error) string {
	if strings.Contains(err.Error(), "failed calling webhook") {
		return "the webhooks of Cluster API check each change: start the managers of this version again, and then run the command again"
	}
	return "run the command again: it continues with what is left"
}

// verify reads the objects again: managers may have added what was removed.
func verify(ctx context.Context, opts *Options, c client.Client, to semver.Version) error {
	objects, err := takeover.Read(ctx, c, nil)
	if err != nil {
		return err
	}
	again := takeover.HandBack(to, objects)
	if len(again.Changes) == 0 {
		return nil
	}
	for _, change := range again.Changes {
		opts.IO.Logf(1, "again: %s", change)
	}
	return fmt.Errorf("managers have added what was removed to %d objects again, because Machines are being created, changed or deleted: "+
		"run the command again when that is complete", len(again.Changes))
}
