package machinepool

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// poolChanged selects changes of what the replicas and the template of a MachinePool depend on.
func poolChanged() predicate.Predicate {
	return predicate.Or(watch.Created(), watch.Updated(func(before, after *clusterv1.MachinePool) bool {
		return before.Generation != after.Generation || !maps.Equal(before.Annotations, after.Annotations)
	}))
}

// ofMachine returns the pool of a Machine.
func (c *Controller[P, M]) ofMachine(ctx context.Context, obj client.Object) []reconcile.Request {
	m, ok := obj.(*clusterv1.Machine)
	if _, pooled := obj.GetLabels()[clusterv1.MachinePoolNameLabel]; !ok || !pooled ||
		m.Spec.InfrastructureRef.Kind != c.provider.Machine.Kind {
		return nil
	}
	infrastructure := c.provider.NewMachine(c.provider.NewPool())
	if c.Client.Get(ctx, types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.InfrastructureRef.Name}, infrastructure) != nil {
		return nil // Without its infrastructure machine, it is no longer a machine of a pool.
	}
	return c.ofInfraMachine(ctx, infrastructure)
}

// machineChanged selects changes of Machines that plans depend on.
func machineChanged() predicate.Predicate {
	return predicate.Or(watch.Created(), watch.Deleted(), watch.Updated(func(before, after *clusterv1.Machine) bool {
		healthy := clusterv1.MachineNodeHealthyV1Beta1Condition
		return before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			condition.IsTrue(before, healthy) != condition.IsTrue(after, healthy) ||
			before.Spec.Version != after.Spec.Version
	}))
}

// ofInfraMachine returns the pools that own an infrastructure machine.
func (c *Controller[P, M]) ofInfraMachine(_ context.Context, obj client.Object) []reconcile.Request {
	var out []reconcile.Request
	for _, owner := range obj.GetOwnerReferences() {
		of, err := schema.ParseGroupVersion(owner.APIVersion)
		if err == nil && of.Group == c.provider.Pool.Group && owner.Kind == c.provider.Pool.Kind {
			out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: owner.Name}})
		}
	}
	return out
}

// infraMachineChanged selects changes of infrastructure machines that plans or the status of a pool depend on.
func (c *Controller[P, M]) infraMachineChanged() predicate.Predicate {
	return predicate.Or(watch.Created(), watch.Deleted(), watch.Updated(func(before, after M) bool {
		return before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
			len(before.GetOwnerReferences()) != len(after.GetOwnerReferences()) || before.GetGeneration() != after.GetGeneration() ||
			c.provider.Observe(before) != c.provider.Observe(after) || c.provider.Changed != nil && c.provider.Changed(before, after)
	}))
}
