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

// adopt adds the cluster name label, and the Cluster as owner if no MachineDeployment controls the MachineSet; a new one gets the finalizer
// in the same write. It makes the Cluster an owner of the templates.
func (c *Controller) adopt(ctx context.Context, s *scope) (step.Result, error) {
	set := s.set
	ownership.AddClusterLabel(set, s.cluster)
	guarded, err := c.guard.Adds(ctx)
	if err != nil {
		return step.Done(), err
	}
	alone := metav1.GetControllerOf(set) == nil
	if guarded && alone && !ownership.Has(set, s.cluster) {
		controllerutil.AddFinalizer(set, clusterv1.MachineSetFinalizer)
	}
	if alone {
		ownership.AddCluster(set, s.cluster)
	}
	for _, ref := range reference.OfMachine(&set.Spec.Template.Spec) {
		// A template that cannot be read must not stop the other steps. If it does not exist, cloning reports it when it is needed.
		_, err := reference.AddOwner(ctx, c.Client, c.external, ref, set.Namespace, ownership.ClusterReference(s.cluster))
		s.report(err)
	}
	return step.Done(), nil
}
