package machinedeployment

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// adopt adds the cluster name label and the Cluster as owner. A MachineDeployment that has no revision yet is new, and gets the finalizer:
// the revision is going to be written, too.
func (c *Controller) adopt(ctx context.Context, s *scope) (step.Result, error) {
	ownership.AddCluster(s.deployment, s.cluster)
	var err error
	s.guarded, err = c.guard.Adds(ctx)
	if _, old := s.deployment.Annotations[clusterv1.RevisionAnnotation]; s.guarded && !old {
		controllerutil.AddFinalizer(s.deployment, clusterv1.MachineDeploymentFinalizer)
	}
	return step.Done(), err
}

// ownTemplates makes the Cluster an owner of the templates. The MachineSet controller does that if there is a current MachineSet.
func (c *Controller) ownTemplates(ctx context.Context, s *scope) error {
	var errs []error
	for _, ref := range reference.OfMachine(&s.deployment.Spec.Template.Spec) {
		_, err := reference.AddOwner(ctx, c.Client, c.external, ref, s.deployment.Namespace, ownership.ClusterReference(s.cluster))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
