package cluster

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

func references(obj client.Object) []string {
	if cluster, ok := obj.(*clusterv1.Cluster); ok {
		return reference.Keys(cluster.Spec.InfrastructureRef, cluster.Spec.ControlPlaneRef)
	}
	return nil
}

// caCreated selects the creation of cluster CA Secrets, which the kubeconfig step may wait for.
func caCreated() predicate.Predicate {
	return predicate.And(watch.Created(), predicate.NewPredicateFuncs(func(obj client.Object) bool {
		cluster := obj.GetLabels()[clusterv1.ClusterNameLabel]
		return cluster != "" && obj.GetName() == pki.SecretName(cluster, pki.ClusterCA)
	}))
}

// byLabel maps an object to the Cluster of its cluster name label.
func byLabel(_ context.Context, obj client.Object) []reconcile.Request {
	name := obj.GetLabels()[clusterv1.ClusterNameLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}}}
}

// machineChanges selects Machines that were deleted, and control plane Machines that just got their Node.
func machineChanges() predicate.Predicate {
	return predicate.Or(watch.Deleted(), watch.Updated(func(before, after *clusterv1.Machine) bool {
		return isControlPlane(after) && before.Status.NodeRef == nil && after.Status.NodeRef != nil
	}))
}

// started returns false for a Cluster of a ClusterClass until the topology controller has set both references.
func started(cluster *clusterv1.Cluster) bool {
	return !cluster.DeletionTimestamp.IsZero() || cluster.Spec.Topology == nil ||
		(cluster.Spec.InfrastructureRef != nil && cluster.Spec.ControlPlaneRef != nil)
}

// isStarted is started as a filter of events.
func isStarted(obj client.Object) bool {
	cluster, ok := obj.(*clusterv1.Cluster)
	return ok && started(cluster)
}
