package machinepool

import (
	"context"
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Indexes of MachinePools, in addition to the one of references.
const (
	byProviderID = "spec.providerIDList"
	byCluster    = "machinepool.clusterName"
)

func indexes() []step.Index {
	return []step.Index{
		{
			Object: &clusterv1.MachinePool{},
			Field:  byProviderID,
			Values: values(func(p *clusterv1.MachinePool) []string { return p.Spec.ProviderIDList }),
		},
		{
			Object: &clusterv1.MachinePool{},
			Field:  byCluster,
			Values: values(func(p *clusterv1.MachinePool) []string { return []string{p.Spec.ClusterName} }),
		},
		{Object: &clusterv1.MachinePool{}, Field: reference.Index, Values: values(func(p *clusterv1.MachinePool) []string {
			return reference.Keys(reference.OfMachine(&p.Spec.Template.Spec)...)
		})},
	}
}

func values(of func(*clusterv1.MachinePool) []string) client.IndexerFunc {
	return func(obj client.Object) []string {
		if p, ok := obj.(*clusterv1.MachinePool); ok {
			return of(p)
		}
		return nil
	}
}

// machineChanges selects the changes of Machines that the controller depends on, which are not those of their status, except for
// the request to remediate them, and the version of their kubelet.
func machineChanges() predicate.Predicate {
	return predicate.Or(watch.Created(), watch.Deleted(), watch.Updated(func(before, after *clusterv1.Machine) bool {
		return metadataChanged(before, after) || before.Generation != after.Generation || kubeletVersion(before) != kubeletVersion(after) ||
			condition.IsFalse(before, clusterv1.MachineOwnerRemediatedV1Beta1Condition) !=
				condition.IsFalse(after, clusterv1.MachineOwnerRemediatedV1Beta1Condition)
	}))
}

// infraMachineChanges selects the changes of infrastructure machines that the controller depends on.
func infraMachineChanges() predicate.Predicate {
	return predicate.Or(watch.Created(), watch.Deleted(), watch.Updated(metadataChanged))
}

// metadataChanged reports whether labels, annotations, owners or finalizers changed, or the deletion began.
func metadataChanged(before, after client.Object) bool {
	return !maps.Equal(before.GetLabels(), after.GetLabels()) || !maps.Equal(before.GetAnnotations(), after.GetAnnotations()) ||
		before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
		!reflect.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences())
}

// nodeChanged reports whether a field changed that the controller reads. Heartbeats of kubelets do not count.
func nodeChanged(before, after client.Object) bool {
	a, ok := before.(*corev1.Node)
	if !ok {
		return false
	}
	b, ok := after.(*corev1.Node)
	return ok && (a.Spec.ProviderID != b.Spec.ProviderID || isReady(a) != isReady(b) || !maps.Equal(a.Annotations, b.Annotations) ||
		!equality.Semantic.DeepEqual(a.Spec.Taints, b.Spec.Taints))
}

func (c *Controller) ofCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	return c.pools(ctx, client.ObjectKeyFromObject(obj), func(*clusterv1.MachinePool) bool { return true })
}

// ofConnection returns the pools of a cluster that need its API server: those that have or may have Nodes, which could have changed
// while there was no connection.
func (c *Controller) ofConnection(ctx context.Context, cluster types.NamespacedName) []reconcile.Request {
	return c.pools(ctx, cluster, func(p *clusterv1.MachinePool) bool {
		return len(p.Spec.ProviderIDList) > 0 || len(p.Status.NodeRefs) > 0
	})
}

func (c *Controller) pools(
	ctx context.Context, cluster types.NamespacedName, matters func(*clusterv1.MachinePool) bool,
) []reconcile.Request {
	return watch.RequestsFor(ctx, c.Client, &clusterv1.MachinePoolList{}, matters,
		client.InNamespace(cluster.Namespace), client.MatchingFields{byCluster: cluster.Name})
}

// ofNode maps a Node of a workload cluster to its pools, by provider ID.
func (c *Controller) ofNode(ctx context.Context, cluster types.NamespacedName, obj client.Object) []reconcile.Request {
	node, ok := obj.(*corev1.Node)
	if !ok || node.Spec.ProviderID == "" {
		return nil
	}
	return watch.RequestsFor(ctx, c.Client, &clusterv1.MachinePoolList{},
		func(p *clusterv1.MachinePool) bool { return p.Spec.ClusterName == cluster.Name },
		client.InNamespace(cluster.Namespace), client.MatchingFields{byProviderID: node.Spec.ProviderID})
}

// ofInfraMachine maps an infrastructure machine to its pool, by label.
func (c *Controller) ofInfraMachine(ctx context.Context, obj client.Object) []reconcile.Request {
	cluster, name := obj.GetLabels()[clusterv1.ClusterNameLabel], obj.GetLabels()[clusterv1.MachinePoolNameLabel]
	if cluster == "" || name == "" {
		return nil
	}
	return c.pools(ctx, types.NamespacedName{Namespace: obj.GetNamespace(), Name: cluster},
		func(p *clusterv1.MachinePool) bool { return naming.LabelValue(p.Name) == name })
}
