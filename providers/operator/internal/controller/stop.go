package controller

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// stop scales the Deployments of a paused provider to zero, whatever else is wrong with the spec: users pause in an emergency, too, and
// before a contract changes. If it is no longer paused, it reports what waits to be resumed, which may take as long as other changes.
func (c *Controller) stop(ctx context.Context, s *scope) (step.Result, error) {
	if !s.isInstalled() {
		return step.Done(), nil
	}
	for i := range s.deployments {
		d := &s.deployments[i]
		switch {
		case s.GetSpec().Paused && !isPaused(*d):
			err := c.Patch(ctx, d, func() {
				annotate(d, operatorv1.PausedReplicasAnnotation, fmt.Sprint(ptr.Deref(d.Spec.Replicas, 1)))
				d.Spec.Replicas = ptr.To[int32](0)
			})
			if err != nil {
				return step.Done(), fmt.Errorf("stopping Deployment %s: %w", client.ObjectKeyFromObject(d), err)
			}
		case !s.GetSpec().Paused && isPaused(*d):
			condition.Set(s.Object, condition.False(operatorv1.ReadyCondition, clusterv1.ConditionSeverityError,
				operatorv1.PausedReason, "%s", resuming(d)))
		}
	}
	return step.Done(), nil
}
