package machinedeployment

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// left lists the MachineSets that a MachineDeployment still has, which is being deleted, and counts their Machines.
func (c *Controller) left(ctx context.Context, s *scope) (step.Result, error) {
	md := s.deployment
	all := &clusterv1.MachineSetList{}
	if err := c.Client.List(ctx, all, ownership.InCluster(md.Namespace, md.Spec.ClusterName)); err != nil {
		return step.Done(), fmt.Errorf("listing MachineSets: %w", err)
	}
	for i := range all.Items {
		if metav1.IsControlledBy(&all.Items[i], md) {
			s.sets = append(s.sets, &all.Items[i])
		}
	}
	var err error
	s.tallies, s.machines, err = c.count(ctx, c.Client, md, s.sets)
	s.listed = err == nil
	return step.Done(), err
}
