package machine

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/drain"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// ByProviderID is the index of Machines by their provider ID. The controllers of Machines and MachinePools use it.
var ByProviderID = step.Index{Object: &clusterv1.Machine{}, Field: "spec.providerID", Values: providerID}

func indexes() []step.Index {
	return []step.Index{
		ByProviderID,
		{Object: &clusterv1.Machine{}, Field: reference.Index, Values: references},
	}
}

func providerID(obj client.Object) []string {
	if m, ok := obj.(*clusterv1.Machine); ok && m.Spec.ProviderID != "" {
		return []string{m.Spec.ProviderID}
	}
	return nil
}

func references(obj client.Object) []string {
	if m, ok := obj.(*clusterv1.Machine); ok {
		return reference.Keys(&m.Spec.Bootstrap.ConfigRef, &m.Spec.InfrastructureRef)
	}
	return nil
}

// clusterEvents selects the changes of a Cluster that its Machines wait for.
func clusterEvents() predicate.Predicate {
	return watch.Cluster(watch.Paused, watch.Deleting, watch.ControlPlaneInitialized)
}

// revisionChanges selects changes of the revision of a MachineDeployment or MachineSet, which determines a taint.
func revisionChanges() predicate.Predicate {
	return watch.Updated(func(before, after client.Object) bool {
		return before.GetAnnotations()[clusterv1.RevisionAnnotation] != after.GetAnnotations()[clusterv1.RevisionAnnotation]
	})
}

// isKubeconfig selects the kubeconfig Secrets of Clusters. Without a kubeconfig there is no connection that could trigger a
// reconcile.
func isKubeconfig() predicate.Predicate {
	return predicate.And(predicate.ResourceVersionChangedPredicate{}, predicate.NewPredicateFuncs(func(obj client.Object) bool {
		cluster := obj.GetLabels()[clusterv1.ClusterNameLabel]
		return cluster != "" && obj.GetName() == pki.SecretName(cluster, pki.Kubeconfig)
	}))
}

// nodeChanged reports whether a field changed that the controller reads. Heartbeats of kubelets do not count.
func nodeChanged(before, after client.Object) bool {
	a, ok := before.(*corev1.Node)
	if !ok {
		return false
	}
	b, ok := after.(*corev1.Node)
	return ok && (a.Spec.ProviderID != b.Spec.ProviderID || healthOf(a) != healthOf(b) || statusesOf(a) != statusesOf(b) ||
		drain.Unreachable(a) != drain.Unreachable(b) ||
		a.Status.NodeInfo != b.Status.NodeInfo ||
		!equality.Semantic.DeepEqual(a.Spec.Taints, b.Spec.Taints) || !maps.Equal(a.Labels, b.Labels) ||
		!maps.Equal(a.Annotations, b.Annotations) ||
		len(a.Status.VolumesAttached) != len(b.Status.VolumesAttached))
}

func (c *Controller) ofCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	return c.machines(ctx, func(*clusterv1.Machine) bool { return true },
		ownership.InCluster(obj.GetNamespace(), obj.GetName()))
}

func (c *Controller) ofDeployment(ctx context.Context, obj client.Object) []reconcile.Request {
	return c.machines(ctx, hasNode, client.InNamespace(obj.GetNamespace()),
		client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: obj.GetName()})
}

func (c *Controller) ofSet(ctx context.Context, obj client.Object) []reconcile.Request {
	return c.machines(ctx, hasNode, client.InNamespace(obj.GetNamespace()),
		client.MatchingLabels{clusterv1.MachineSetNameLabel: obj.GetName()})
}

func hasNode(m *clusterv1.Machine) bool { return m.Status.NodeRef.IsDefined() }

func (c *Controller) ofKubeconfig(ctx context.Context, obj client.Object) []reconcile.Request {
	return c.waitingFor(ctx, types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetLabels()[clusterv1.ClusterNameLabel]})
}

// waitingFor returns the Machines of a cluster that need its API server: those that have or may have a Node, which could have
// changed while there was no connection, and those that are being deleted.
func (c *Controller) waitingFor(ctx context.Context, cluster types.NamespacedName) []reconcile.Request {
	return c.machines(ctx, func(m *clusterv1.Machine) bool { return m.Spec.ProviderID != "" || !m.DeletionTimestamp.IsZero() },
		ownership.InCluster(cluster.Namespace, cluster.Name))
}

// ofNode maps a Node of a workload cluster to its Machine, by provider ID.
func (c *Controller) ofNode(ctx context.Context, cluster types.NamespacedName, obj client.Object) []reconcile.Request {
	node, ok := obj.(*corev1.Node)
	if !ok || node.Spec.ProviderID == "" {
		return nil
	}
	return c.machines(ctx, func(m *clusterv1.Machine) bool { return m.Spec.ClusterName == cluster.Name },
		client.InNamespace(cluster.Namespace), client.MatchingFields{ByProviderID.Field: node.Spec.ProviderID})
}

func (c *Controller) machines(ctx context.Context, selects func(*clusterv1.Machine) bool, opts ...client.ListOption) []reconcile.Request {
	return watch.RequestsFor(ctx, c.Client, &clusterv1.MachineList{}, selects, opts...)
}
