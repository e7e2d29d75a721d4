package topology

import (
	"context"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/lifecycle"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// reference writes labels, finalizer and references into the Cluster before the objects are created, so that its deletion
// finds all of them; and which hooks to call, and which step of an upgrade begins, before what makes them so is applied.
func (c *Controller) reference(_ context.Context, s *scope) (step.Result, error) {
	if s.cluster.Labels == nil {
		s.cluster.Labels = map[string]string{}
	}
	maps.Copy(s.cluster.Labels, s.plan.Labels)
	controllerutil.AddFinalizer(s.cluster, clusterv1.ClusterFinalizer)
	s.cluster.Spec.InfrastructureRef, s.cluster.Spec.ControlPlaneRef = s.plan.InfrastructureRef, s.plan.ControlPlaneRef
	lifecycle.MarkCalled(s.cluster, s.plan.Hooks.Called...)
	lifecycle.MarkPending(s.cluster, s.plan.Hooks.Pending...)
	if s.plan.Versions.Step != "" {
		lifecycle.MarkStep(s.cluster, s.plan.Versions.Step)
	}
	return step.Checkpoint(), nil
}
