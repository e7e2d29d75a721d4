package cluster

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// deleteChildren deletes the workers, and control plane Machines without control plane object, and waits until no descendants
// are left except the Machines of the control plane object.
func (c *Controller) deleteChildren(ctx context.Context, s *scope) (step.Result, error) {
	return c.deleteAndWait(ctx, c.Client, s.Cluster, managed(s.Cluster))
}

// managed selects the Machines that the control plane object deletes.
func managed(cluster *clusterv1.Cluster) func(client.Object) bool {
	return func(child client.Object) bool {
		m, ok := child.(*clusterv1.Machine)
		return ok && isControlPlane(m) && cluster.Spec.ControlPlaneRef.IsDefined()
	}
}
