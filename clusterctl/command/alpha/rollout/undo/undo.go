// Package undo is the command `clusterctl alpha rollout undo`.
package undo

import (
	"context"

	"github.com/spf13/cobra"

	commands "sigs.k8s.io/cluster-api/clusterctl/command/alpha/rollout"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/rollout"
)

// Options are the inputs of the command.
type Options struct {
	*commands.Options
	// ToRevision is the revision to roll back to; 0 means the previous one.
	ToRevision int64
}

// NewCmd returns the command. runF, if not nil, is run instead.
func NewCmd(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Options: commands.New(f)}
	cmd := &cobra.Command{
		Use:   "undo RESOURCE...",
		Short: "Undo a cluster-api resource",
		Long: `Roll a MachineDeployment back to an earlier revision.

The command sets spec.template to the template of the MachineSet with that revision, which is in its
annotation machinedeployment.clusters.x-k8s.io/revision. It fails if the MachineDeployment is paused. The
template of a MachineDeployment that belongs to a Cluster with a topology is set by the topology: change
the Cluster or its ClusterClass instead.`,
		Example: `  # Roll back to the previous revision
  clusterctl alpha rollout undo machinedeployment/my-md-0

  # Roll back to revision 3
  clusterctl alpha rollout undo machinedeployment/my-md-0 --to-revision=3`,
	}
	cmd.Flags().Int64Var(&opts.ToRevision, "to-revision", 0, "The `revision` to roll back to. Defaults to the previous one")
	return opts.Complete(cmd, f, []string{rollout.MachineDeployment}, func(ctx context.Context) error {
		if runF != nil {
			return runF(ctx, opts)
		}
		return run(ctx, opts)
	})
}

func run(ctx context.Context, opts *Options) error {
	return opts.ForEach(ctx, "rolled back", func(r *rollout.Rollouts, res rollout.Resource) error {
		return r.Undo(ctx, res, opts.ToRevision)
	})
}
