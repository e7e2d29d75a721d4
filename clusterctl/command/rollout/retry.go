package rollout

import (
	"context"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
)

// NewRetry returns the command `clusterctl rollout retry`. runF, if not nil, is run instead.
func NewRetry(f *factory.Factory, runF func(context.Context, *FleetOptions) error) *cobra.Command {
	opts := newFleetOptions(f)
	cmd := &cobra.Command{
		Use:   "retry NAME",
		Short: "Continue a ClusterRollout that has halted",
		Long: `Continue a ClusterRollout that has halted, and consider Clusters that have failed anew. A changed ClusterClass is planned
anew, which needs new approvals.

The command increases spec.attempt, once until the rollout has taken note of that.`,
		Example: `  # Continue after the cause of the failures is removed
  clusterctl rollout retry my-rollout`,
	}
	return opts.complete(cmd, f, func(ctx context.Context) error {
		if runF != nil {
			return runF(ctx, opts)
		}
		return runRetry(ctx, opts)
	})
}

func runRetry(ctx context.Context, opts *FleetOptions) error {
	changes, err := opts.changes(ctx)
	if err != nil {
		return err
	}
	done, err := changes.Retry(ctx)
	if err != nil {
		return err
	}
	what := "tries again"
	if done.Before {
		what = "has still to take note of the last change, and tries again then"
	}
	opts.IO.Infof("ClusterRollout %s %s: see %s", opts.Name, what,
		opts.IO.Command("clusterctl rollout status %s -n %s", opts.Name, done.Rollout.Namespace))
	return nil
}
