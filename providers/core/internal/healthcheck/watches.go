package healthcheck

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/healthcheck/diagnosis"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Indexes of the controller.
const (
	// byCluster is the index of MachineHealthChecks by the name of their Cluster.
	byCluster = "machinehealthcheck.clusterName"
	// byNode is the index of Machines by the names of their Cluster and Node.
	byNode = "machinehealthcheck.node"
)

func indexes() []step.Index {
	return []step.Index{
		{Object: &clusterv1.MachineHealthCheck{}, Field: byCluster, Values: func(obj client.Object) []string {
			if h, ok := obj.(*clusterv1.MachineHealthCheck); ok {
				return []string{h.Spec.ClusterName}
			}
			return nil
		}},
		{Object: &clusterv1.Machine{}, Field: byNode, Values: func(obj client.Object) []string {
			if m, ok := obj.(*clusterv1.Machine); ok && m.Status.NodeRef.IsDefined() {
				return []string{nodeKey(m.Spec.ClusterName, m.Status.NodeRef.Name)}
			}
			return nil
		}},
	}
}

func nodeKey(cluster, node string) string { return cluster + "/" + node }

// machineChanges selects the changes of Machines that a diagnosis depends on.
func machineChanges() predicate.Predicate {
	return predicate.Or(watch.Created(), watch.Deleted(), watch.Updated(func(before, after *clusterv1.Machine) bool {
		return !maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations) ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			before.Status.NodeRef.IsDefined() != after.Status.NodeRef.IsDefined() ||
			failureChanged(before.GetV1Beta1Status(), after.GetV1Beta1Status()) || conditionChanged(before, after)
	}))
}

// failureChanged reports whether a Machine fails in another way.
func failureChanged(before, after clusterv1.MachineV1Beta1DeprecatedStatus) bool {
	return (before.FailureReason == nil) != (after.FailureReason == nil) || (before.FailureMessage == nil) != (after.FailureMessage == nil)
}

// conditionChanged reports whether a condition changed that marks depend on.
func conditionChanged(before, after *clusterv1.Machine) bool {
	for _, t := range []clusterv1.ConditionType{
		clusterv1.MachineHealthCheckSucceededV1Beta1Condition, clusterv1.MachineOwnerRemediatedV1Beta1Condition,
		clusterv1.MachineNodeHealthyV1Beta1Condition,
	} {
		was, is := condition.Get(before, t), condition.Get(after, t)
		if (was == nil) != (is == nil) || was != nil && was.Status != is.Status {
			return true
		}
	}
	return false
}

// statusesChanged selects changes of the metav1 conditions of Machines. Messages do not count.
func statusesChanged() predicate.Predicate {
	return watch.Updated(func(before, after *clusterv1.Machine) bool {
		return !slices.EqualFunc(before.Status.Conditions, after.Status.Conditions, func(was, is metav1.Condition) bool {
			return was.Type == is.Type && was.Status == is.Status && was.LastTransitionTime.Equal(&is.LastTransitionTime)
		})
	})
}

// nodeChanged reports whether a condition of a Node changed. Heartbeats of kubelets do not count.
func nodeChanged(before, after client.Object) bool {
	a, ok := before.(*corev1.Node)
	if !ok {
		return false
	}
	b, ok := after.(*corev1.Node)
	if !ok || len(a.Status.Conditions) != len(b.Status.Conditions) {
		return ok
	}
	for i := range a.Status.Conditions {
		was, is := &a.Status.Conditions[i], &b.Status.Conditions[i]
		if was.Type != is.Type || was.Status != is.Status || !was.LastTransitionTime.Equal(&is.LastTransitionTime) {
			return true
		}
	}
	return false
}

// ofMachine returns the checks that select a Machine.
func (c *Controller) ofMachine(ctx context.Context, obj client.Object) []reconcile.Request {
	m, ok := obj.(*clusterv1.Machine)
	if !ok {
		return nil
	}
	return c.checks(ctx, types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.ClusterName},
		func(h *clusterv1.MachineHealthCheck) bool { return diagnosis.Selects(h, m) })
}

// ofConditions returns the checks that select a Machine and depend on its conditions.
func (c *Controller) ofConditions(ctx context.Context, obj client.Object) []reconcile.Request {
	m, ok := obj.(*clusterv1.Machine)
	if !ok {
		return nil
	}
	return c.checks(ctx, types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.ClusterName}, func(h *clusterv1.MachineHealthCheck) bool {
		return len(h.Spec.Checks.UnhealthyMachineConditions) > 0 && diagnosis.Selects(h, m)
	})
}

func (c *Controller) ofCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	return c.ofConnection(ctx, client.ObjectKeyFromObject(obj))
}

// ofConnection returns all checks of a cluster.
func (c *Controller) ofConnection(ctx context.Context, cluster types.NamespacedName) []reconcile.Request {
	return c.checks(ctx, cluster, func(*clusterv1.MachineHealthCheck) bool { return true })
}

func (c *Controller) checks(
	ctx context.Context, cluster types.NamespacedName, matters func(*clusterv1.MachineHealthCheck) bool,
) []reconcile.Request {
	return watch.RequestsFor(ctx, c.Client, &clusterv1.MachineHealthCheckList{}, matters,
		client.InNamespace(cluster.Namespace), client.MatchingFields{byCluster: cluster.Name}, client.UnsafeDisableDeepCopy)
}

// ofNode returns the checks that select the Machine of a Node.
func (c *Controller) ofNode(ctx context.Context, cluster types.NamespacedName, obj client.Object) []reconcile.Request {
	list := &clusterv1.MachineList{}
	if err := c.Client.List(ctx, list, client.InNamespace(cluster.Namespace),
		client.MatchingFields{byNode: nodeKey(cluster.Name, obj.GetName())}, client.UnsafeDisableDeepCopy); err != nil {
		return nil // Caches do not fail.
	}
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, c.ofMachine(ctx, &list.Items[i])...)
	}
	return out
}

// ofRequest returns the checks that select the Machine that owns an external remediation request.
func (c *Controller) ofRequest(ctx context.Context, obj client.Object) []reconcile.Request {
	for _, ref := range obj.GetOwnerReferences() {
		if ref.Kind != clusterv1.MachineKind || ref.Name != obj.GetName() {
			continue
		}
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{}}
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(obj), m); err != nil {
			return nil
		}
		return c.ofMachine(ctx, m)
	}
	return nil
}
