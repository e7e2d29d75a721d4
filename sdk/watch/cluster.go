package watch

import (
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// Aspect is a value of a Cluster that controllers of other kinds depend on. Values are compared with ==.
type Aspect func(*clusterv1.Cluster) any

// Paused returns whether the Cluster is paused.
func Paused(c *clusterv1.Cluster) any { return ptr.Deref(c.Spec.Paused, false) }

// Deleting returns whether the Cluster is being deleted.
func Deleting(c *clusterv1.Cluster) any { return !c.DeletionTimestamp.IsZero() }

// InfrastructureRef returns whether the Cluster refers to its infrastructure. Together with the creation of Clusters, it is when the
// infrastructure object may find its Cluster in a cache which lags behind that of the object.
func InfrastructureRef(c *clusterv1.Cluster) any { return c.Spec.InfrastructureRef.IsDefined() }

// Endpoint returns the address of the API server.
func Endpoint(c *clusterv1.Cluster) any { return c.Spec.ControlPlaneEndpoint }

// InfrastructureReady returns whether the Cluster's infrastructure is ready for Machines.
func InfrastructureReady(c *clusterv1.Cluster) any {
	return ptr.Deref(c.Status.Initialization.InfrastructureProvisioned, false)
}

// ControlPlaneReady returns whether the control plane is ready.
func ControlPlaneReady(c *clusterv1.Cluster) any {
	return ptr.Deref(c.Status.Initialization.ControlPlaneInitialized, false)
}

// ControlPlaneInitialized returns whether kubeadm init, or its equivalent, has completed.
func ControlPlaneInitialized(c *clusterv1.Cluster) any {
	return condition.IsTrue(c, clusterv1.ControlPlaneInitializedV1Beta1Condition)
}

// Cluster selects the creation of Clusters, and updates that change one of the aspects.
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
