package machinepool

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta1"
	"sigs.k8s.io/cluster-api/infrastructure/docker/internal/node"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/watch"
)

func infrastructureOf(_ context.Context, obj client.Object) []reconcile.Request {
	p, ok := obj.(*clusterv1.MachinePool)
	if !ok || p.Spec.Template.Spec.InfrastructureRef.Kind != Kind {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: p.Namespace, Name: p.Spec.Template.Spec.InfrastructureRef.Name}}}
}

// poolChanged selects changes of what the replicas and the template of a MachinePool depend on.
func poolChanged() predicate.Predicate {
	return predicate.Or(watch.Created(), watch.Updated(func(before, after *clusterv1.MachinePool) bool {
		return before.Generation != after.Generation || !maps.Equal(before.Annotations, after.Annotations)
	}))
}

// ofMachine returns the pool of a Machine.
func (c *Controller) ofMachine(ctx context.Context, obj client.Object) []reconcile.Request {
	m, ok := obj.(*clusterv1.Machine)
	if _, pooled := obj.GetLabels()[clusterv1.MachinePoolNameLabel]; !ok || !pooled || m.Spec.InfrastructureRef.Kind != node.Kind {
		return nil
	}
	infrastructure := &dockerv1.DockerMachine{}
	if c.Client.Get(ctx, types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.InfrastructureRef.Name}, infrastructure) != nil {
		return nil // Without a DockerMachine, it is no machine of a pool any more.
	}
	return ofDockerMachine(ctx, infrastructure)
}

// machineChanged selects changes of Machines that plans depend on.
func machineChanged() predicate.Predicate {
	return predicate.Or(watch.Created(), watch.Deleted(), watch.Updated(func(before, after *clusterv1.Machine) bool {
		healthy := clusterv1.MachineNodeHealthyCondition
		return before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			condition.IsTrue(before, healthy) != condition.IsTrue(after, healthy) || ptr.Deref(before.Spec.Version, "") != ptr.Deref(after.Spec.Version, "")
	}))
}

// ofDockerMachine returns the pools that own a DockerMachine.
func ofDockerMachine(_ context.Context, obj client.Object) []reconcile.Request {
	var out []reconcile.Request
	for _, owner := range obj.GetOwnerReferences() {
		of, err := schema.ParseGroupVersion(owner.APIVersion)
		if err == nil && of.Group == dockerv1.GroupVersion.Group && owner.Kind == Kind {
			out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: owner.Name}})
		}
	}
	return out
}

// dockerMachineChanged selects changes of DockerMachines that plans or the status of a pool depend on.
func dockerMachineChanged() predicate.Predicate {
	return predicate.Or(watch.Created(), watch.Deleted(), watch.Updated(func(before, after *dockerv1.DockerMachine) bool {
		a, b := member{obj: before}, member{obj: after}
		return a.joined() != b.joined() || a.deleting() != b.deleting() || len(before.OwnerReferences) != len(after.OwnerReferences) ||
			!equality.Semantic.DeepEqual(before.Spec, after.Spec) || !equality.Semantic.DeepEqual(before.Status.Addresses, after.Status.Addresses)
	}))
}
