package plan

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"sigs.k8s.io/cluster-api/providers/core/internal/topology/desired"
)

// refreshReferences updates the references in the desired objects to the newest API versions of their kinds, and returns the
// references of the Cluster. Older versions in the class apply to templates and patches only: controllers that follow a
// reference update its version, and would have to do so again after each apply.
func (c *comparison) refreshReferences(ctx context.Context) (infrastructure, controlPlane *corev1.ObjectReference, err error) {
	infrastructure, controlPlane = desired.RefTo(c.want.InfrastructureCluster), desired.RefTo(c.want.ControlPlane)
	refs := []*corev1.ObjectReference{infrastructure, controlPlane}
	for _, w := range c.want.Workers {
		machine := &w.Template().Spec
		refs = append(refs, machine.Bootstrap.ConfigRef, &machine.InfrastructureRef)
	}
	var machines *corev1.ObjectReference
	if c.want.ControlPlaneMachines != nil {
		machines = desired.RefTo(c.want.ControlPlaneMachines)
		refs = append(refs, machines)
	}
	for _, ref := range refs {
		if _, err := c.External.Versions.Refresh(ctx, ref); err != nil {
			return nil, nil, err
		}
	}
	if machines != nil {
		err = c.want.SetMachines(machines)
	}
	return infrastructure, controlPlane, err
}
