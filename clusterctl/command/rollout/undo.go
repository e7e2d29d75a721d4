package rollout

import (
	"context"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/rollout"
)

// UndoOptions are the inputs of the command `clusterctl rollout undo`.
type UndoOptions struct {
	*Options
	// ToRevision is the revision to roll back to; 0 means the previous one.
	ToRevision int64
}

// NewUndo returns the command `clusterctl rollout undo`. runF, if not nil, is run instead.
func NewUndo(f *factory.Factory, runF func(context.Context, *UndoOptions) error) *cobra.Command {
	opts := &UndoOptions{Options: newOptions(f)}
	cmd := &cobra.Command{
		Use:   "undo RESOURCE...",
		Short: "Undo a cluster-api resource",
		Long: `Roll a MachineDeployment back to an earlier revision.

The command sets spec.template to the template of the MachineSet with that revision, which is in its
annotation machinedeployment.clusters.x-k8s.io/revision. It fails if the MachineDeployment is paused. The
template of a MachineDeployment that belongs to a Cluster with a topology is set by the topology: change
the Cluster or its ClusterClass instead.`,
		Example: `  # Roll back to the previous revision
  clusterctl rollout undo machinedeployment/my-md-0

  # Roll back to revision 3
  clusterctl rollout undo machinedeployment/my-md-0 --to-revision=3`,
	}
	cmd.Flags().Int64Var(&opts.ToRevision, "to-revision", 0, "The `revision` to roll back to. Defaults to the previous one")
	return opts.complete(cmd, f, []string{rollout.MachineDeployment}, func(ctx context.Context) error {
		if runF != nil {
			return runF(ctx, opts)
		}
		return undo(ctx, opts)
	})
}

func undo(ctx context.Context, opts *UndoOptions) error {
	return opts.forEach(ctx, "rolled back", func(r *rollout.Rollouts, res rollout.Resource) error {
		return r.Undo(ctx, res, opts.ToRevision)
	})
}
