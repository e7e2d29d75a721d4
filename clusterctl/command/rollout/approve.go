package rollout

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/clusterrollout"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
)

// ApproveOptions are the inputs of the command `clusterctl rollout approve`.
type ApproveOptions struct {
	*FleetOptions
	// Stage is the stage to approve; empty: the one that waits.
	Stage string
	// PlanHash is the hash of the plan to approve; empty: the current one.
	PlanHash string
}

// NewApprove returns the command `clusterctl rollout approve`. runF, if not nil, is run instead.
func NewApprove(f *factory.Factory, runF func(context.Context, *ApproveOptions) error) *cobra.Command {
	opts := &ApproveOptions{FleetOptions: newFleetOptions(f)}
	cmd := &cobra.Command{
		Use:   "approve NAME",
		Short: "Approve a stage of a ClusterRollout",
		Long: `Approve a stage of a ClusterRollout with the gate Approval, by default the one that waits.

An approval is of one plan, which --plan-hash names: if the plan has changed, because Clusters or their class have,
nothing is approved. Approving a stage again has no effect.`,
		Example: `  # Approve the stage that waits
  clusterctl rollout approve my-rollout

  # Approve a stage of the plan that was reviewed
  clusterctl rollout approve my-rollout --stage production --plan-hash 0123456789ab`,
	}
	cmd.Flags().StringVar(&opts.Stage, "stage", "", "The `stage` to approve. Defaults to the one that waits")
	cmd.Flags().StringVar(&opts.PlanHash, "plan-hash", "", "The `hash` of the plan to approve. Defaults to that of the current one")
	clusterflags.CompleteWith(cmd, "stage", opts.stages)
	return opts.complete(cmd, f, func(ctx context.Context) error {
		if runF != nil {
			return runF(ctx, opts)
		}
		return runApprove(ctx, opts)
	})
}

// stages returns the stages of a rollout, to complete --stage.
func (o *ApproveOptions) stages(ctx context.Context, args []string, _ string) ([]string, error) {
	if len(args) == 0 {
		return nil, nil
	}
	m, err := o.Connect(o.Kubeconfig)
	if err != nil {
		return nil, err
	}
	r, err := clusterrollout.Get(ctx, m.Client, m.Key(o.Namespace, args[0]))
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range r.Status.Stages {
		names = append(names, r.Status.Stages[i].Name)
	}
	return names, nil
}

func runApprove(ctx context.Context, opts *ApproveOptions) error {
	changes, err := opts.changes(ctx)
	if err != nil {
		return err
	}
	stage, done, err := changes.Approve(ctx, opts.Stage, opts.PlanHash)
	if err != nil {
		return err
	}
	plan := done.Rollout.Status.Plan
	fmt.Fprintf(opts.IO.Out, "Plan %s: %s\n", plan.Hash, clusterrollout.Totals(plan))
	if plan.Irreversible != "" {
		fmt.Fprintf(opts.IO.Out, "Cannot go back: %s\n", plan.Irreversible)
	}
	what := "is approved"
	if done.Before {
		what = "was approved before"
	}
	opts.IO.Infof("Stage %s of ClusterRollout %s %s: see %s", stage, opts.Name, what,
		opts.IO.Command("clusterctl rollout status %s -n %s", opts.Name, done.Rollout.Namespace))
	return nil
}
