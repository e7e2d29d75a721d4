package machineset

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// ofOrphan maps a Machine without controller to the MachineSets whose selector it matches.
func (c *Controller) ofOrphan(ctx context.Context, obj client.Object) []reconcile.Request {
	m, ok := obj.(*clusterv1.Machine)
	if !ok {
		return nil
	}
	adopts := func(set *clusterv1.MachineSet) bool { return selects(set, m) }
	return watch.RequestsFor(ctx, c.Client, &clusterv1.MachineSetList{}, adopts, ownership.InCluster(m.Namespace, m.Spec.ClusterName))
}

// spreadIn maps a Cluster to the MachineSets that spread their Machines, and so wait for its failure domains.
func (c *Controller) spreadIn(ctx context.Context, cluster client.Object) []reconcile.Request {
	of := ownership.InCluster(cluster.GetNamespace(), cluster.GetName())
	return watch.RequestsFor(ctx, c.Client, &clusterv1.MachineSetList{}, spreads, of)
}

func selects(set *clusterv1.MachineSet, m *clusterv1.Machine) bool {
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	return err == nil && !selector.Empty() && selector.Matches(labelsOf(m))
}
