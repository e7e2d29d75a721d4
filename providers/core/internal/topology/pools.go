package topology

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/check"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/upgrade"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// PoolVersions returns the kubelet versions of the Nodes of a MachinePool. The version of a Node that does not exist (any more) is
// empty. If the workload cluster is not connected, the error is remote.ErrNotConnected.
type PoolVersions func(ctx context.Context, cluster *clusterv1.Cluster, pool *clusterv1.MachinePool) ([]string, error)

// poolVersions returns PoolVersions that reads Nodes in workload clusters.
func poolVersions(workload func(context.Context, types.NamespacedName) (client.Reader, error)) PoolVersions {
	return func(ctx context.Context, cluster *clusterv1.Cluster, pool *clusterv1.MachinePool) ([]string, error) {
		if len(pool.Status.NodeRefs) == 0 {
			return nil, nil
		}
		nodes, err := workload(ctx, client.ObjectKeyFromObject(cluster))
		if err != nil {
			return nil, err
		}
		versions := make([]string, 0, len(pool.Status.NodeRefs))
		for i := range pool.Status.NodeRefs {
			node := &corev1.Node{}
			if err := nodes.Get(ctx, client.ObjectKey{Name: pool.Status.NodeRefs[i].Name}, node); err != nil && !apierrors.IsNotFound(err) {
				return nil, fmt.Errorf("reading Node %.253s: %w", pool.Status.NodeRefs[i].Name, err)
			}
			versions = append(versions, node.Status.NodeInfo.KubeletVersion)
		}
		return versions, nil
	}
}

// findUpgradingPool sets Upgrading of a MachinePool whose Nodes have another version than its spec, or may have one.
func (p *Planner) findUpgradingPool(ctx context.Context, cluster *clusterv1.Cluster, pool *clusterv1.MachinePool, w *upgrade.Workers) error {
	versions, err := p.PoolVersions(ctx, cluster, pool)
	if remote.IsNotConnected(err) {
		w.Upgrading, w.Unreachable = true, true
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the versions of the Nodes of MachinePool %s: %w", w.Object, err)
	}
	w.Upgrading = slices.ContainsFunc(versions, func(v string) bool { return !check.KubeletHasVersion(v, w.Version) })
	return nil
}

// workloadEvents are the events of workload clusters that wake Clusters with MachinePools, whose upgrades wait for Nodes.
func workloadEvents(reader client.Reader) remote.Events {
	return remote.Events{
		Connection: func(ctx context.Context, cluster types.NamespacedName) []reconcile.Request {
			pools := &clusterv1.MachinePoolList{}
			err := reader.List(ctx, pools, client.InNamespace(cluster.Namespace), client.MatchingFields{clusterIndex: cluster.Name})
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
