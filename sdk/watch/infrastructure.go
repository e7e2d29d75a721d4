package watch

import (
	"context"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Infrastructure maps a Cluster, Machine or MachinePool to the infrastructure object that it references, if that has this kind.
func Infrastructure(kind string) handler.MapFunc {
	return func(_ context.Context, obj client.Object) []reconcile.Request {
		var name string
		switch o := obj.(type) {
		case *clusterv1.Cluster:
			if ref := o.Spec.InfrastructureRef; ref.Kind == kind {
				name = ref.Name
			}
		case *clusterv1.Machine:
			if ref := o.Spec.InfrastructureRef; ref.Kind == kind {
				name = ref.Name
			}
		case *clusterv1.MachinePool:
			if ref := o.Spec.Template.Spec.InfrastructureRef; ref.Kind == kind {
				name = ref.Name
			}
		}
		if name == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: name}}}
	}
}

// Labeled maps a Cluster to the objects that have its name in the label cluster.x-k8s.io/cluster-name. list is an empty list of their
// kind, and is not modified.
func Labeled(from client.Reader, list client.ObjectList) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		empty, ok := list.DeepCopyObject().(client.ObjectList)
		if !ok {
			return nil
		}
		return Requests(ctx, from, empty, client.InNamespace(obj.GetNamespace()),
			client.MatchingLabels{clusterv1.ClusterNameLabel: obj.GetName()})
	}
}

// Bootstrapped selects the creation of Machines, and updates that set the name of the Secret with their bootstrap data, which
// infrastructure providers wait for.
func Bootstrapped() predicate.Predicate {
	return predicate.Or(Created(), Updated(func(before, after *clusterv1.Machine) bool {
		return ptr.Deref(before.Spec.Bootstrap.DataSecretName, "") == "" && ptr.Deref(after.Spec.Bootstrap.DataSecretName, "") != ""
	}))
}
