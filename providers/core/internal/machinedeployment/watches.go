package machinedeployment

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/machineset"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// ofOrphan maps a MachineSet without controller to the MachineDeployments whose selector it matches.
func (c *Controller) ofOrphan(ctx context.Context, obj client.Object) []reconcile.Request {
	set, ok := obj.(*clusterv1.MachineSet)
	if !ok {
		return nil
	}
	adopts := func(md *clusterv1.MachineDeployment) bool {
		selector, err := metav1.LabelSelectorAsSelector(&md.Spec.Selector)
		return err == nil && !selector.Empty() && selector.Matches(labels.Set(set.Labels))
	}
	return watch.RequestsFor(ctx, c.Client, &clusterv1.MachineDeploymentList{}, adopts,
		ownership.InCluster(set.Namespace, set.Spec.ClusterName))
}

// ofMachine maps a Machine to its MachineDeployment.
func ofMachine(_ context.Context, obj client.Object) []reconcile.Request {
	name := obj.GetLabels()[clusterv1.MachineDeploymentNameLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: name}}}
}

// machineChanges selects Machines whose deletion starts or is complete, because then there is room for others, and those that begin to
// pass their readiness gates or no longer do. All other changes of Machines reach the MachineDeployment through the status of their
// MachineSet.
func machineChanges() predicate.Predicate {
	return predicate.Or(watch.Deleted(), watch.Updated(func(before, after *clusterv1.Machine) bool {
		_, passed := machineset.Passes(before)
		_, passes := machineset.Passes(after)
		return before.DeletionTimestamp.IsZero() && !after.DeletionTimestamp.IsZero() || passed != passes
	}))
}

// machineMoved selects Machines that their MachineSet has handed over to another one, whose replicas have to include them, and those whose
// update in place ends: the next one may move.
func machineMoved() predicate.Predicate {
	return watch.Updated(func(before, after *clusterv1.Machine) bool {
		return inplace.IsMoved(after) && !inplace.IsMoved(before) || inplace.IsUpdating(before) && !inplace.IsUpdating(after)
	})
}
