package cluster

import (
	"cmp"
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/identity"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// remove removes the container, and then the finalizer.
func (c *Controller) remove(ctx context.Context, s *scope) (step.Result, error) {
	if !controllerutil.ContainsFinalizer(s.obj.Object, c.kinds.ClusterFinalizer) {
		return step.Stop(), nil
	}
	c.jobs.ForgetAll(client.ObjectKeyFromObject(s.obj.Object))
	if result, err := c.confirm(ctx, s); err != nil || result.Ends() {
		return result, err
	}
	if err := c.removeContainers(ctx, s); err != nil {
		return step.Done(), &step.Error{Reason: clusterv1.DeletingV1Beta1Reason, Severity: clusterv1.ConditionSeverityInfo, Err: err}
	}
	// An error only costs a network that the next cluster uses again.
	if err := c.engine.RemoveNetwork(ctx, identity.Network); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot remove the network of containers")
	}
	controllerutil.RemoveFinalizer(s.obj.Object, c.kinds.ClusterFinalizer)
	return step.Stop(), nil
}

// removeContainers removes the containers that belong to the object by their labels, whatever their names. A container of
// Cluster API v1.7 is found by its name.
func (c *Controller) removeContainers(ctx context.Context, s *scope) error {
	cluster := s.clusterName()
	claim := s.claim(cluster)
	labels := claim.Labels()
	delete(labels, identity.ClusterLabel)
	found, err := c.engine.List(ctx, labels)
	if err != nil {
		return err
	}
	if len(found) == 0 && claim.Had && cluster != "" {
		state, err := c.engine.Inspect(ctx, identity.LoadBalancerContainer(cluster))
		if err != nil && !engine.IsNotFound(err) {
			return err
		}
		if err == nil && claim.Check(state.Name, state.Labels) == nil {
			found = append(found, *state)
		}
	}
	var errs []error
	for _, state := range found {
		errs = append(errs, c.engine.Remove(ctx, state.Name))
	}
	return errors.Join(errs...)
}

// clusterName returns the name of the Cluster, which may no longer exist.
func (s *scope) clusterName() string {
	name := s.obj.Labels[clusterv1.ClusterNameLabel]
	for _, owner := range s.obj.OwnerReferences {
		if gv, err := schema.ParseGroupVersion(owner.APIVersion); err == nil && gv.Group == clusterv1.GroupVersion.Group &&
			owner.Kind == clusterv1.ClusterKind {
			name = cmp.Or(name, owner.Name)
		}
	}
	return name
}
