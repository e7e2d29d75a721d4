package rollout

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/rollout/wave"
	"sigs.k8s.io/cluster-api/providers/fleet/rolloutplan"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// start changes Clusters, and sets them back, unless the rollout in the API server says otherwise by now.
func (c *Controller) start(ctx context.Context, s *scope) (step.Result, error) {
	if !has(s.decision, false) {
		return step.Done(), nil
	}
	if result, err := c.Latest(ctx, step.Reread(s.rollout, &fleetv1.ClusterRollout{}, func(live, cached *fleetv1.ClusterRollout) bool {
		return live.Generation == cached.Generation
	})); err != nil || result.Ends() {
		return result, err
	}
	if s.rollout.Status.StartTime == nil {
		s.rollout.Status.StartTime = &metav1.Time{Time: s.now}
	}
	var written []client.Object
	var errs []error
	for _, a := range s.decision.Actions {
		if a.Verb == wave.Mark {
			continue
		}
		m := s.member(a.Cluster.Name)
		cluster, err := c.change(ctx, s, m, a)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		written = append(written, cluster)
	}
	c.await(ctx, s, written)
	return step.Done(), errors.Join(errs...)
}

// change changes a Cluster, or sets it back. A Cluster that the API server refuses to change has failed.
func (c *Controller) change(ctx context.Context, s *scope, m *member, a wave.Action) (client.Object, error) {
	entry := s.entry(m, a)
	cluster, err := c.write(ctx, m.cluster, entry, func(cluster *clusterv1.Cluster) {
		if a.Verb == wave.RollBack {
			rolloutplan.Revert(entry.Previous, cluster)
			return
		}
		entry.Unhealthy = !m.seen.Healthy || m.seen.Remediating
		// What a Cluster has already was set by others, and does not go back.
		if previous := rolloutplan.Apply(&s.rollout.Spec.Change, cluster); !m.seen.AtTarget {
			entry.Previous = previous
		}
	})
	if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) && !apierrors.IsBadRequest(err) {
		return cluster, err
	}
	refused := *m.entry
	refused.State, refused.Since, refused.Attempt = fleetv1.RolloutStateFailed, metav1.NewTime(s.now), attempt(s.rollout)
	if a.Verb == wave.RollBack {
		refused.State = fleetv1.RolloutStateRolledBack
	}
	refused.Message = condition.Truncate(fmt.Sprintf("The API server refuses the change: %v", err), maxReason)
	return c.write(ctx, m.cluster, &refused, nil)
}
