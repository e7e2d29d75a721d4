package rollout

import (
	"context"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
)

// AbortOptions are the inputs of the command `clusterctl rollout abort`.
type AbortOptions struct {
	*FleetOptions
	// Rollback sets back what was changed.
	Rollback bool
	// Yes is the answer to the question.
	Yes bool
}

// NewAbort returns the command `clusterctl rollout abort`. runF, if not nil, is run instead.
func NewAbort(f *factory.Factory, runF func(context.Context, *AbortOptions) error) *cobra.Command {
	opts := &AbortOptions{FleetOptions: newFleetOptions(f)}
	cmd := &cobra.Command{
		Use:   "abort NAME",
		Short: "End a ClusterRollout early",
		Long: `End a ClusterRollout: it changes no more Clusters. Those that are in change continue.

With --rollback, the class and the variables of the Clusters that it has changed are set back, which replaces Machines
again; versions do not go back. An aborted rollout cannot be continued: to try again, create another one; to wait, use
"clusterctl rollout pause clusterrollout/NAME".`,
		Example: `  # Change no more Clusters
  clusterctl rollout abort my-rollout

  # Set back what was changed, without being asked
  clusterctl rollout abort my-rollout --rollback --yes`,
	}
	cmd.Flags().BoolVar(&opts.Rollback, "rollback", false, "Set back the class and the variables of the Clusters that were changed")
	cmd.Flags().BoolVarP(&opts.Yes, "yes", "y", false, "Confirm without being asked")
	return opts.complete(cmd, f, func(ctx context.Context) error {
		if runF != nil {
			return runF(ctx, opts)
		}
		return runAbort(ctx, opts)
	})
}

func runAbort(ctx context.Context, opts *AbortOptions) error {
	changes, err := opts.changes(ctx)
	if err != nil {
		return err
	}
	question := "The rollout changes no more Clusters, and cannot be continued."
	if opts.Rollback {
		question = "The rollout changes no more Clusters, cannot be continued, and sets back the class and variables of those that it has " +
			"changed, which may replace their Machines again."
	}
	if !opts.Yes {
		if err := opts.ask(question); err != nil {
			return err
		}
	}
	done, err := changes.Abort(ctx, opts.Rollback)
	if err != nil {
		return err
	}
	what := "is aborted"
	if done.Before {
		what = "was aborted before"
	}
	opts.IO.Infof("ClusterRollout %s %s: see %s", opts.Name, what,
		opts.IO.Command("clusterctl rollout status %s -n %s", opts.Name, done.Rollout.Namespace))
	return nil
}
