package rollout

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Rollouts changes the rollouts of a namespace.
type Rollouts struct {
	// Client reads and writes without a cache.
	Client client.Client
	// Namespace holds the objects.
	Namespace string
	// Now returns the time.
	Now func() time.Time
	// Backoff is how often, and after which delays, an operation is tried again if its object changes meanwhile.
	Backoff wait.Backoff
	// Warn reports what makes an operation less useful than it seems.
	Warn func(format string, args ...any)
}

// New returns the Rollouts of a namespace.
func New(c client.Client, namespace string, warn func(format string, args ...any)) *Rollouts {
	return &Rollouts{Client: c, Namespace: namespace, Now: time.Now, Backoff: retry.DefaultBackoff, Warn: warn}
}

// Restart replaces all Machines of a resource, by setting spec.rolloutAfter to the next second. A paused resource, or one that has a
// rollout scheduled, is an error.
func (r *Rollouts) Restart(ctx context.Context, res Resource) error {
	return r.change(ctx, res, "restart", func(s subject) error {
		now := r.Now()
		if s.isPaused() {
			return fmt.Errorf("it is paused: run `clusterctl alpha rollout resume %s -n %s` first", res, r.Namespace)
		}
		if after := s.rolloutAfter(); after != nil && after.After(now) {
			return fmt.Errorf("a rollout is already scheduled, by spec.rolloutAfter %s: wait until then, or remove the field",
				after.UTC().Format(time.RFC3339))
		}
		// Creation times are in seconds, as the field is, and what was created in the same second is not replaced.
		s.setRolloutAfter(metav1.NewTime(now.UTC().Truncate(time.Second).Add(time.Second)))
		return nil
	})
}

// Pause stops the rollouts of a resource until Resume. A paused resource is an error, except for a ClusterRollout.
func (r *Rollouts) Pause(ctx context.Context, res Resource) error {
	return r.change(ctx, res, "pause", func(s subject) error {
		if s.isPaused() && res.Type != ClusterRollout {
			return fmt.Errorf("it is already paused")
		}
		s.setPaused(true)
		return nil
	})
}

// Resume continues the rollouts of a paused resource. One that is not paused is an error, except for a ClusterRollout.
func (r *Rollouts) Resume(ctx context.Context, res Resource) error {
	return r.change(ctx, res, "resume", func(s subject) error {
		if !s.isPaused() && res.Type != ClusterRollout {
			return fmt.Errorf("it is not paused")
		}
		s.setPaused(false)
		return nil
	})
}

// change reads an object, applies a function to it, and patches the difference, again if the object changes meanwhile.
func (r *Rollouts) change(ctx context.Context, res Resource, verb string, apply func(subject) error) error {
	key := client.ObjectKey{Namespace: r.Namespace, Name: res.Name}
	err := retry.OnError(r.Backoff, func(err error) bool { return apierrors.IsConflict(err) && ctx.Err() == nil }, func() error {
		s := res.subject()
		if err := r.Client.Get(ctx, key, s.object()); err != nil {
			return err
		}
		before, ok := s.object().DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("unexpected type %T", s.object())
		}
		if err := apply(s); err != nil {
			return err
		}
		return r.Client.Patch(ctx, s.object(), client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("cannot %s %s: it does not exist in namespace %s: see `kubectl get %ss -n %s`, and set its namespace with --namespace",
			verb, res, r.Namespace, res.Type, r.Namespace)
	case apierrors.IsConflict(err):
		return fmt.Errorf("cannot %s %s in namespace %s: it changed during every attempt: run the command again: %w", verb, res, r.Namespace, err)
	default:
		return fmt.Errorf("cannot %s %s in namespace %s: %w", verb, res, r.Namespace, err)
	}
}
