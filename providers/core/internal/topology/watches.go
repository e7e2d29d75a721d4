package topology

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/classes"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/lifecycle"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/mutation"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

func isOwned(o client.Object) bool {
	_, ok := o.GetLabels()[clusterv1.ClusterTopologyOwnedLabel]
	return ok
}

func owned() predicate.Predicate { return predicate.NewPredicateFuncs(isOwned) }

func hasTopology() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		cluster, ok := o.(*clusterv1.Cluster)
		return ok && cluster.Spec.Topology.IsDefined()
	})
}

// relevantCluster selects resyncs, and events of changes that the topology depends on. Of the status, only a hook depends on the
// initialization of the control plane; but the next reconcile waits for the controller's own writes, so changes of its condition and of
// finalizers are selected, too.
func relevantCluster() predicate.Predicate {
	return predicate.Or(watch.Created(), watch.Deleted(), watch.Resynced(), watch.Updated(func(before, after *clusterv1.Cluster) bool {
		return metadataChanged(before, after) || !slices.Equal(before.Finalizers, after.Finalizers) ||
			outcomeChanged(condition.Get(before, clusterv1.TopologyReconciledV1Beta1Condition),
				condition.Get(after, clusterv1.TopologyReconciledV1Beta1Condition)) ||
			(lifecycle.IsPending(after, lifecycle.AfterControlPlaneInitialized) &&
				!condition.IsTrue(before, clusterv1.ControlPlaneInitializedV1Beta1Condition) &&
				condition.IsTrue(after, clusterv1.ControlPlaneInitializedV1Beta1Condition))
	}))
}

// outcomeChanged reports whether the condition changed, other than from one error to another: after an error, the next reconcile comes
// with a delay that grows. An extension may return another message each time, and would be called without a pause.
func outcomeChanged(before, after *clusterv1.Condition) bool {
	if before != nil && after != nil && before.Severity == clusterv1.ConditionSeverityError &&
		after.Severity == before.Severity && after.Reason == before.Reason {
		return false
	}
	return !reflect.DeepEqual(before, after)
}

// metadataChanged reports whether the spec, by its generation, or relevant metadata changed.
func metadataChanged(before, after client.Object) bool {
	return before.GetGeneration() != after.GetGeneration() ||
		before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
		!maps.Equal(before.GetLabels(), after.GetLabels()) ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations()) ||
		!reflect.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences())
}

// statusFields are the status fields of control planes that an upgrade waits for, in either contract.
func statusFields() []string {
	return []string{
		"version", "versions", "replicas", "updatedReplicas", "upToDateReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas",
	}
}

// relevantObject selects events of objects that can change the plan. Creations of the topology's own objects are not selected,
// because this controller creates them; creations of the templates of classes are.
func relevantObject() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !isOwned(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return metadataChanged(e.ObjectOld, e.ObjectNew) || statusChanged(e.ObjectOld, e.ObjectNew)
		},
	}
}

// statusChanged reports whether one of statusFields changed. Only provider objects are unstructured.
func statusChanged(before, after client.Object) bool {
	was, ok := before.(*unstructured.Unstructured)
	if !ok {
		return false
	}
	is, ok := after.(*unstructured.Unstructured)
	if !ok {
		return false
	}
	for _, field := range statusFields() {
		old, _, _ := unstructured.NestedFieldNoCopy(was.Object, "status", field)
		current, _, _ := unstructured.NestedFieldNoCopy(is.Object, "status", field)
		if !reflect.DeepEqual(old, current) {
			return true
		}
	}
	return false
}

// clusterOf maps an object of a topology to its Cluster.
func clusterOf(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[clusterv1.ClusterNameLabel]
	if name == "" || !isOwned(o) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
}

// byOwner maps an object of a topology to its Cluster, and a template of a class to all Clusters of the class.
func byOwner(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		requests := clusterOf(ctx, o)
		for _, ref := range o.GetOwnerReferences() {
			if ref.Kind == "ClusterClass" {
				requests = append(requests, clustersOf(ctx, reader, types.NamespacedName{Namespace: o.GetNamespace(), Name: ref.Name})...)
			}
		}
		return requests
	}
}

func clustersOf(ctx context.Context, reader client.Reader, class types.NamespacedName) []reconcile.Request {
	return watch.Requests(ctx, reader, &clusterv1.ClusterList{}, classes.Of(class)...)
}

// ofClass maps a class to all its Clusters.
func ofClass(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		return clustersOf(ctx, reader, client.ObjectKeyFromObject(o))
	}
}

// ofExtension maps an ExtensionConfig to the Clusters that its extensions may hold back, and to those of classes that it patches.
// Earlier responses are dropped from the cache.
func (c *Controller) ofExtension(ctx context.Context, o client.Object) []reconcile.Request {
	if c.hooks != nil {
		c.hooks.forget()
	}
	clusters := &clusterv1.ClusterList{}
	err := c.Cache.List(ctx, clusters)
	classes, listErr := mutation.Classes(ctx, c.Cache, o.GetName())
	if err := errors.Join(err, listErr); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the Clusters of an extension")
	}
	var out []reconcile.Request
	for i := range clusters.Items {
		cluster := &clusters.Items[i]
		current := condition.Get(cluster, clusterv1.TopologyReconciledV1Beta1Condition)
		held := current != nil && slices.Contains(heldReasons(), current.Reason)
		if held || (cluster.Spec.Topology.IsDefined() && slices.Contains(classes, cluster.GetClassKey())) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(cluster)})
		}
	}
	return out
}

// heldReasons are the reasons of condition TopologyReconciled while an extension blocks, fails or is not yet discovered.
func heldReasons() []string {
	return []string{
		clusterv1.TopologyReconciledHookBlockingV1Beta1Reason, clusterv1.TopologyReconcileFailedV1Beta1Reason, clusterv1.DeletedV1Beta1Reason,
	}
}

// workloadEvents are the events of workload clusters that wake Clusters with MachinePools, whose upgrades wait for Nodes.
func workloadEvents(reader client.Reader) remote.Events {
	return remote.Events{
		Connection: func(ctx context.Context, cluster types.NamespacedName) []reconcile.Request {
			pools := &clusterv1.MachinePoolList{}
			err := reader.List(ctx, pools, ownership.InCluster(cluster.Namespace, cluster.Name),
				client.HasLabels{clusterv1.ClusterTopologyOwnedLabel})
			if err != nil || len(pools.Items) == 0 {
				return nil // A cache does not fail.
			}
			return []reconcile.Request{{NamespacedName: cluster}}
		},
		Watches: []remote.Watch{{Object: &corev1.Node{}, Requests: ofPoolNode, Changed: kubeletChanged}},
	}
}

// ofPoolNode maps a Node of a MachinePool, according to its annotations, to the Cluster. A new Node has none yet: it changes
// status.nodeRefs of its pool. Workload clusters are not trusted: a wrong annotation costs one reconcile.
func ofPoolNode(_ context.Context, cluster types.NamespacedName, obj client.Object) []reconcile.Request {
	if obj.GetAnnotations()[clusterv1.OwnerKindAnnotation] != clusterv1.MachinePoolKind {
		return nil
	}
	return []reconcile.Request{{NamespacedName: cluster}}
}

// kubeletChanged reports whether the version of the kubelet of a Node changed.
func kubeletChanged(before, after client.Object) bool {
	was, ok := before.(*corev1.Node)
	if !ok {
		return false
	}
	is, ok := after.(*corev1.Node)
	return ok && was.Status.NodeInfo.KubeletVersion != is.Status.NodeInfo.KubeletVersion
}

// nodesChanged selects MachinePools whose Nodes are others than before.
func nodesChanged() predicate.Predicate {
	return watch.Updated(func(before, after *clusterv1.MachinePool) bool {
		return !slices.Equal(before.Status.NodeRefs, after.Status.NodeRefs)
	})
}
