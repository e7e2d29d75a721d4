package clusterrollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/rolloutplan"
)

// Changes changes the spec of a rollout.
type Changes struct {
	Client client.Client
	Key    client.ObjectKey
	Now    func() time.Time
	// Backoff is how often, and after which delays, a change is tried again if the rollout changes meanwhile.
	Backoff wait.Backoff
}

// NewChanges returns the changes of a rollout.
func NewChanges(c client.Client, key client.ObjectKey) *Changes {
	return &Changes{Client: c, Key: key, Now: time.Now, Backoff: retry.DefaultBackoff}
}

// Done is the result of a change.
type Done struct {
	Rollout *fleetv1.ClusterRollout
	// Before is set if the rollout was so already.
	Before bool
}

// change reads the rollout, applies a function to it, and patches the difference, again if another client changes it meanwhile.
func (c *Changes) change(ctx context.Context, verb string, apply func(*fleetv1.ClusterRollout) error) (Done, error) {
	var done Done
	err := retry.OnError(c.Backoff, func(err error) bool { return apierrors.IsConflict(err) && ctx.Err() == nil }, func() error {
		r, err := Get(ctx, c.Client, c.Key)
		if err != nil {
			return err
		}
		before := r.DeepCopy()
		if err := apply(r); err != nil {
			return err
		}
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		raw, err := patch.Data(r)
		if err != nil {
			return err
		}
		unchanged, err := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}).Data(before.DeepCopy())
		if err != nil {
			return err
		}
		if done = (Done{Rollout: r, Before: string(raw) == string(unchanged)}); done.Before {
			return nil
		}
		return c.Client.Patch(ctx, r, patch)
	})
	if apierrors.IsConflict(err) {
		err = fmt.Errorf("it changed during every attempt: run the command again: %w", err)
	}
	if err != nil {
		return Done{}, fmt.Errorf("cannot %s ClusterRollout %s: %w", verb, c.Key, err)
	}
	return done, nil
}

// Approve approves a stage, that which waits if it is empty, of the plan with a hash, the current one if it is empty. If the plan changes
// meanwhile, nothing is approved.
func (c *Changes) Approve(ctx context.Context, stage, hash string) (approved string, done Done, err error) {
	user, err := c.user(ctx)
	if err != nil {
		return "", Done{}, err
	}
	done, err = c.change(ctx, "approve", func(r *fleetv1.ClusterRollout) error {
		if r.Ended() {
			return fmt.Errorf("it has ended, as %s", r.Status.Phase)
		}
		if r.Status.Plan == nil || r.Status.Plan.Hash == "" {
			return errors.New("its plan is not complete yet: wait until its phase is no longer Planning")
		}
		if hash == "" {
			hash = r.Status.Plan.Hash
		}
		if hash != r.Status.Plan.Hash {
			return fmt.Errorf("its plan is now %s, not %s: see what it does with `clusterctl rollout plan %s -n %s`, and approve that",
				r.Status.Plan.Hash, hash, r.Name, r.Namespace)
		}
		var err error
		if approved, err = c.stage(r, stage); err != nil || approval(r, approved) != nil {
			return err
		}
		r.Spec.Approvals = slices.DeleteFunc(r.Spec.Approvals, func(a fleetv1.RolloutApproval) bool { return a.Stage == approved })
		r.Spec.Approvals = append(r.Spec.Approvals, fleetv1.RolloutApproval{
			Stage: approved, PlanHash: hash, User: user, Time: ptr.To(metav1.NewTime(c.Now().UTC().Truncate(time.Second))),
		})
		return nil
	})
	return approved, done, err
}

// stage returns the stage to approve.
func (c *Changes) stage(r *fleetv1.ClusterRollout, stage string) (string, error) {
	strategy := r.Status.Strategy
	if strategy == nil {
		strategy = r.Spec.Strategy
	}
	var gated []string
	if strategy != nil {
		for i := range strategy.Stages {
			if strategy.Stages[i].Gate == fleetv1.RolloutGateApproval {
				gated = append(gated, strategy.Stages[i].Name)
			}
		}
	}
	switch {
	case stage != "" && strategy != nil && !slices.Contains(gated, stage):
		return "", fmt.Errorf("stage %s needs no approval: those that do are: %s", stage, strings.Join(gated, ", "))
	case stage != "":
		return stage, nil
	}
	if waiting := WaitingStage(r); waiting != "" {
		return waiting, nil
	}
	return "", fmt.Errorf("no stage waits for an approval, its phase is %s: with --stage, one can be approved before",
		r.Status.Phase)
}

// user returns who the API server thinks that we are; empty if it does not tell.
func (c *Changes) user(ctx context.Context) (string, error) {
	review := &authenticationv1.SelfSubjectReview{}
	err := c.Client.Create(ctx, review)
	switch {
	case err == nil:
		return review.Status.UserInfo.Username, nil
	case client.IgnoreNotFound(err) == nil || apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err):
		return "", nil // It is older than Kubernetes v1.28.
	}
	return "", fmt.Errorf("cannot find out the name of your user: %w", err)
}

// Abort ends a rollout, and sets back what it has changed if rollback is set.
func (c *Changes) Abort(ctx context.Context, rollback bool) (Done, error) {
	return c.change(ctx, "abort", func(r *fleetv1.ClusterRollout) error {
		wanted := fleetv1.RolloutAbortStop
		if rollback {
			wanted = fleetv1.RolloutAbortRollback
		}
		switch {
		case r.Spec.Abort == wanted:
			return nil
		case r.Ended() && !rollback:
			return fmt.Errorf("it has ended, as %s", r.Status.Phase)
		case r.Ended():
			return fmt.Errorf("it has ended, as %s: to set Clusters back, create another ClusterRollout with the class and variables that they had",
				r.Status.Phase)
		case r.Spec.Abort == fleetv1.RolloutAbortRollback:
			return errors.New("it is being rolled back already: pause it to stop that")
		case rollback && !rolloutplan.Reversible(&r.Spec.Change):
			return fmt.Errorf("nothing of it can go back: %s: use it without --rollback", rolloutplan.Irreversible(&r.Spec.Change))
		}
		r.Spec.Abort = wanted
		return nil
	})
}

// Retry makes a rollout that has halted, or has failed Clusters, try again.
func (c *Changes) Retry(ctx context.Context) (Done, error) {
	return c.change(ctx, "retry", func(r *fleetv1.ClusterRollout) error {
		switch {
		case r.Status.Phase == fleetv1.RolloutAborted || r.Spec.Abort != "":
			return errors.New("it is aborted: create another ClusterRollout")
		case r.Status.ObservedGeneration != r.Generation:
			return nil // What was asked for before, such as a retry, is still to be done.
		case !Halted(r) && value(r.Status.Failed) == 0:
			return fmt.Errorf("there is nothing to retry: it has not halted, and no Cluster has failed; its phase is %s", r.Status.Phase)
		}
		r.Spec.Attempt = ptr.To(value(r.Spec.Attempt) + 1)
		return nil
	})
}
