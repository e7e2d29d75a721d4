package plan

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/check"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/upgrade"
	"sigs.k8s.io/cluster-api/sdk/remote"
)

// PoolVersions returns the kubelet versions of the Nodes of a MachinePool. The version of a Node that does not exist is
// empty. If the workload cluster is not connected, the error is remote.ErrNotConnected.
type PoolVersions func(ctx context.Context, cluster *clusterv1.Cluster, pool *clusterv1.MachinePool) ([]string, error)

// NodeVersions returns PoolVersions that reads Nodes in workload clusters.
func NodeVersions(workload func(context.Context, types.NamespacedName) (client.Reader, error)) PoolVersions {
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
func (p *Planner) findUpgradingPool(
	ctx context.Context, cluster *clusterv1.Cluster, pool *clusterv1.MachinePool, w *upgrade.Workers,
) error {
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
