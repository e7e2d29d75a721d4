package cluster

import (
	"context"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

func references(obj client.Object) []string {
	if cluster, ok := obj.(*clusterv1.Cluster); ok {
		return reference.Keys(&cluster.Spec.InfrastructureRef, &cluster.Spec.ControlPlaneRef)
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
		return isControlPlane(after) && !before.Status.NodeRef.IsDefined() && after.Status.NodeRef.IsDefined()
	}))
}

// reported selects creations, deletions, and updates that change what the Cluster reports about an object.
func reported[T client.Object](of func(T) []any) predicate.Predicate {
	return predicate.Or(watch.Created(), watch.Deleted(), watch.Updated(func(before, after T) bool {
		return before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() || !reflect.DeepEqual(of(before), of(after))
	}))
}

// isAlone selects objects that no other object manages.
func isAlone(obj client.Object) bool { return metav1.GetControllerOf(obj) == nil }

func machineReports(m *clusterv1.Machine) []any {
	state := []any{m.Spec.Version, m.Status.NodeInfo == nil}
	if m.Status.NodeInfo != nil {
		state = append(state, m.Status.NodeInfo.KubeletVersion)
	}
	for _, t := range []string{
		clusterv1.ReadyCondition, clusterv1.MachineUpToDateCondition, clusterv1.AvailableCondition,
		clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineOwnerRemediatedCondition,
	} {
		if c := report.Get(m, t); c != nil {
			state = append(state, c.Status, c.Reason, c.Message)
		}
		state = append(state, t)
	}
	return state
}

func deploymentReports(md *clusterv1.MachineDeployment) []any {
	s := md.Status
	return []any{
		md.Spec.Replicas, s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.UpToDateReplicas, s.Versions, s.Conditions,
	}
}

func setReports(set *clusterv1.MachineSet) []any {
	s := set.Status
	return []any{
		set.Spec.Replicas, s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.UpToDateReplicas, s.Versions, s.Conditions,
	}
}

func poolReports(pool *clusterv1.MachinePool) []any {
	s := pool.Status
	return []any{
		pool.Spec.Replicas, s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.UpToDateReplicas, s.Versions, s.Conditions,
	}
}

// started returns false for a Cluster of a ClusterClass until the topology controller has set both references.
func started(cluster *clusterv1.Cluster) bool {
	return !cluster.DeletionTimestamp.IsZero() || !cluster.Spec.Topology.IsDefined() ||
		(cluster.Spec.InfrastructureRef.IsDefined() && cluster.Spec.ControlPlaneRef.IsDefined())
}

// isStarted is started as a filter of events.
func isStarted(obj client.Object) bool {
	cluster, ok := obj.(*clusterv1.Cluster)
	return ok && started(cluster)
}
