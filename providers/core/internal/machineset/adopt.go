package machineset

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// adopt adds the cluster name label, and the Cluster as owner if no MachineDeployment controls the MachineSet. It makes the
// Cluster an owner of the templates.
func (c *Controller) adopt(ctx context.Context, s *scope) (step.Result, error) {
	set := s.set
	ownership.AddClusterLabel(set, s.cluster)
	if metav1.GetControllerOf(set) == nil {
		if err := c.own(ctx, s); err != nil {
			return step.Done(), err
		}
	}
	for _, ref := range reference.OfMachine(&set.Spec.Template.Spec) {
		// A template that cannot be read must not stop the other steps. If it does not exist, cloning reports it when it is needed.
		_, err := reference.AddOwner(ctx, c.Client, c.external, ref, set.Namespace, ownership.ClusterReference(s.cluster))
		s.report(err)
	}
	return step.Done(), nil
}

// own makes the Cluster the owner of a MachineSet without MachineDeployment. A new one gets the finalizer in the same write.
func (c *Controller) own(ctx context.Context, s *scope) error {
	if !ownership.Has(s.set, s.cluster) {
		guarded, err := c.guard.Enabled(ctx)
		if err != nil {
			return err
		}
		if guarded {
			controllerutil.AddFinalizer(s.set, clusterv1.MachineSetFinalizer)
		}
	}
	ownership.AddCluster(s.set, s.cluster)
	return nil
}
