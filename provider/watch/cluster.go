package watch

import (
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
)

// Aspect is something that controllers of other kinds read of a Cluster. Its values are compared with ==.
type Aspect func(*clusterv1.Cluster) any

// Paused is whether the Cluster is paused.
func Paused(c *clusterv1.Cluster) any { return c.Spec.Paused }

// Deleting is whether the Cluster is being deleted.
func Deleting(c *clusterv1.Cluster) any { return !c.DeletionTimestamp.IsZero() }

// Endpoint is the address of the API server.
func Endpoint(c *clusterv1.Cluster) any { return c.Spec.ControlPlaneEndpoint }

// InfrastructureReady is whether Machines can be placed in the Cluster's infrastructure.
func InfrastructureReady(c *clusterv1.Cluster) any { return c.Status.InfrastructureReady }

// ControlPlaneReady is whether the control plane accepts Machines.
func ControlPlaneReady(c *clusterv1.Cluster) any { return c.Status.ControlPlaneReady }

// ControlPlaneInitialized is whether kubeadm init, or what takes its place, has completed.
func ControlPlaneInitialized(c *clusterv1.Cluster) any {
	return condition.IsTrue(c, clusterv1.ControlPlaneInitializedCondition)
}

// Cluster lets Clusters through that are new, and those of which one of the aspects changed.
func Cluster(aspects ...Aspect) predicate.Predicate {
	p := nothing()
	p.CreateFunc = func(event.CreateEvent) bool { return true }
	p.UpdateFunc = func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*clusterv1.Cluster)
		if !ok {
			return false
		}
		after, ok := e.ObjectNew.(*clusterv1.Cluster)
		if !ok {
			return false
		}
		for _, aspect := range aspects {
			if aspect(before) != aspect(after) {
				return true
			}
		}
		return false
	}
	return p
}
