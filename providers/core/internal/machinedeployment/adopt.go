package machinedeployment

import (
	"context"
	"errors"

	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// adopt adds the cluster name label and the Cluster as owner, and updates the API versions of the references. That comes before
// the MachineSets, which copy the references.
func (c *Controller) adopt(ctx context.Context, s *scope) (step.Result, error) {
	md := s.deployment
	ownership.AddCluster(md, s.cluster)
	for _, ref := range reference.OfMachine(&md.Spec.Template.Spec) {
		if _, err := c.external.Versions.Refresh(ctx, ref); err != nil {
			return step.Done(), err
		}
	}
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
