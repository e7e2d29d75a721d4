// Package takeover has the commands `clusterctl takeover check`, `handback` and `record`.
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
		Short: "Complete the return to another version of Cluster API",
		Long: `Remove what another version of Cluster API, from v1.7 to v1.14, would wait for without knowing it: finalizers and hooks that keep
objects in deletion forever. Nothing else changes, and no Machine is replaced.

Run it with --dry-run before the managers of that version are deployed, and without when they run. It is an error if that version could
not continue or read something, such as an update in place, and then nothing is changed.`,
		Example: `  # Show what v1.7.9 does not know, and whether it can take over
  clusterctl takeover handback --to v1.7.9 --dry-run

  # Deploy the managers of v1.7.9, and complete their takeover
  clusterctl upgrade apply --core cluster-api:v1.7.9 --bootstrap kubeadm:v1.7.9 --control-plane kubeadm:v1.7.9
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
		opts.IO.Infof("v%s can take over: %d of %d objects will be changed when it runs", to, len(plan.Changes), len(objects.Metadata))
		if objects.ServesV1Beta2 {
			adviseRestart(opts.IO, to)
		}
		return nil
	}
	if len(plan.Early) > 0 {
		return fmt.Errorf("nothing is changed, because v%s does not run yet (--dry-run shows what will be):\n  %s",
			to, strings.Join(plan.Early, "\n  "))
	}
	progress := func(n int) {
		if n%100 == 0 {
			opts.IO.Infof("%d of %d objects changed", n, len(plan.Changes))
		}
	}
	if err := takeover.Apply(ctx, c, to, objects, plan, progress); err != nil {
		return fmt.Errorf("%w\nrun the command again: it continues with what is left", err)
	}
	if err := verify(ctx, opts, c, to); err != nil {
		return err
	}
	opts.IO.Infof("%d of %d objects changed: v%s has taken over", len(plan.Changes), len(objects.Metadata), to)
	adviseRestart(opts.IO, to)
	return nil
}

// adviseRestart tells what no client can do.
func adviseRestart(streams *iostreams.Streams, to semver.Version) {
	if takeover.NeedsGarbageCollectorRestart(to) {
		streams.Noticef("If definitions with v1beta2 are replaced by those of v%s, restart kube-controller-manager afterwards: its garbage "+
			"collector would not find the objects that it has first seen in v1beta2, and what only it deletes would stay.", to)
	}
}

// verify reads the objects again: a manager of this version that still runs, wherever that is, adds what was removed.
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
	return fmt.Errorf("managers of this version still run, and have added %d of what was removed: deploy v%s instead of them, "+
		"and run the command again", len(again.Changes), to)
}
