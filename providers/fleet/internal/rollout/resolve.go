package rollout

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/rolloutplan"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// resolve determines the strategy and the Clusters.
func (c *Controller) resolve(ctx context.Context, s *scope) (step.Result, error) {
	wrong, err := c.findStrategy(ctx, s)
	if err != nil {
		return step.Result{}, err
	}
	if wrong == "" {
		wrong = s.check()
	}
	if wrong != "" {
		return s.refuse(wrong), nil
	}
	if wrong, err = c.findClass(ctx, s); wrong != "" || err != nil {
		return s.refuse(wrong), err
	}
	selection, err := rolloutplan.NewSelection(&s.rollout.Spec)
	if err != nil {
		return s.refuse(err.Error()), nil
	}
	return step.Done(), c.gather(ctx, s, selection)
}

// findStrategy finds the strategy: the one that the rollout has begun with, or that of its spec.
func (c *Controller) findStrategy(ctx context.Context, s *scope) (wrong string, err error) {
	r := s.rollout
	switch {
	case r.Status.Strategy != nil && s.planned() != "":
		s.strategy = r.Status.Strategy
	case r.Spec.Strategy != nil:
		s.strategy = r.Spec.Strategy
	default:
		found := &fleetv1.ClusterRolloutStrategy{}
		err := c.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Spec.StrategyRef.Name}, found)
		if apierrors.IsNotFound(err) {
			return fmt.Sprintf("spec.strategyRef: ClusterRolloutStrategy %s does not exist in namespace %s",
				r.Spec.StrategyRef.Name, r.Namespace), nil
		}
		if err != nil {
			return "", err
		}
		s.strategy = &found.Spec
	}
	return "", nil
}

// check returns what is wrong with the spec; empty if nothing is.
func (s *scope) check() string {
	change := &s.rollout.Spec.Change
	if change.ClassRef.Name == "" && change.Version == "" && len(change.Variables) == 0 {
		return "spec.change: one of classRef, version and variables must be set"
	}
	if s.strategy.OnFailure == fleetv1.RolloutRollback && !rolloutplan.Reversible(change) {
		return "onFailure is Rollback, and nothing of spec.change can go back: " + rolloutplan.Irreversible(change)
	}
	if _, err := rolloutplan.Assign(s.strategy, nil); err != nil {
		return err.Error()
	}
	var err error
	if s.windows, err = windowsOf(s.strategy); err != nil {
		return err.Error()
	}
	if s.checks, err = checksOf(s.strategy); err != nil {
		return err.Error()
	}
	return ""
}

// findClass reads the ClusterClass of the change.
func (c *Controller) findClass(ctx context.Context, s *scope) (wrong string, err error) {
	ref := s.rollout.Spec.Change.ClassRef
	if ref.Name == "" {
		return "", nil
	}
	key := client.ObjectKey{Namespace: cmp.Or(ref.Namespace, s.rollout.Namespace), Name: ref.Name}
	class := &clusterv1.ClusterClass{}
	err = c.Live.Get(ctx, key, class)
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("spec.change.classRef: ClusterClass %s does not exist", key), nil
	}
	if err != nil {
		return "", fmt.Errorf("reading ClusterClass %s: %w", key, err)
	}
	s.class = &fleetv1.PlannedClass{Namespace: key.Namespace, Name: key.Name, UID: string(class.UID), Generation: class.Generation}
	return "", nil
}

// gather reads the Clusters that take part, and those that are selected and may still be included.
func (c *Controller) gather(ctx context.Context, s *scope, selection rolloutplan.Selection) error {
	list := &clusterv1.ClusterList{}
	if err := c.Client.List(ctx, list, client.InNamespace(s.rollout.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing Clusters: %w", err)
	}
	active, err := c.active(ctx, s)
	if err != nil {
		return err
	}
	open := s.planned() == "" || includesNew(s.rollout)
	for i := range list.Items {
		cluster := &list.Items[i]
		// An entry that cannot be read is not of a rollout that works, and is replaced.
		entry, _ := fleetv1.RolloutEntryOf(cluster)
		switch {
		case s.owns(entry):
		case !open || !selection.Selects(cluster):
			continue
		case entry != nil && active[string(entry.ID)] == entry.Rollout:
			s.busy = append(s.busy, fmt.Sprintf("%s takes part in ClusterRollout %s", cluster.Name, entry.Rollout))
			continue
		default:
			entry = nil
		}
		s.members = append(s.members, &member{cluster: cluster, entry: entry, seen: s.observe(cluster)})
	}
	slices.SortFunc(s.members, func(a, b *member) int { return cmp.Compare(a.cluster.Name, b.cluster.Name) })
	return nil
}

// active returns the names of the other rollouts that have not ended, by ID.
func (c *Controller) active(ctx context.Context, s *scope) (map[string]string, error) {
	list := &fleetv1.ClusterRolloutList{}
	if err := c.Client.List(ctx, list, client.InNamespace(s.rollout.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ClusterRollouts: %w", err)
	}
	out := map[string]string{}
	for i := range list.Items {
		r := &list.Items[i]
		if id := r.Annotations[fleetv1.RolloutIDAnnotation]; id != "" && !r.Ended() && r.Name != s.rollout.Name {
			out[id] = r.Name
		}
	}
	return out, nil
}
