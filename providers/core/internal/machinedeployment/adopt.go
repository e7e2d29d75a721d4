package machinedeployment

import (
	"context"
	"errors"

	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// adopt adds the cluster name label and the Cluster as owner.
func adopt(_ context.Context, s *scope) (step.Result, error) {
	ownership.AddCluster(s.deployment, s.cluster)
	return step.Done(), nil
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
