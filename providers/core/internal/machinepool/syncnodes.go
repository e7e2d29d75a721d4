package machinepool

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/taint"
	"sigs.k8s.io/cluster-api/sdk/remote"
)

// syncTimeout is how long one reconcile writes to Nodes: a slow workload cluster with many Nodes must not occupy a worker. The rest
// follows after the backoff of an error.
const syncTimeout = 20 * time.Second

// syncNodes annotates the Nodes that have no Machine, sets the taints of the template on them, and removes the taint that keeps Pods away
// from new Nodes. Pools do not set labels.
func (c *Controller) syncNodes(ctx context.Context, s *scope, workload client.Writer, found membership) error {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	var errs []error
	for _, node := range found.unmanaged {
		after := node.DeepCopy()
		if c.taints {
			taint.Sync(after, s.pool.Spec.Template.Spec.Taints) // Before it is annotated.
		}
		for key, value := range map[string]string{
			clusterv1.ClusterNameAnnotation: s.pool.Spec.ClusterName, clusterv1.ClusterNamespaceAnnotation: s.pool.Namespace,
			clusterv1.OwnerKindAnnotation: clusterv1.MachinePoolKind, clusterv1.OwnerNameAnnotation: s.pool.Name,
		} {
			metav1.SetMetaDataAnnotation(&after.ObjectMeta, key, value)
		}
		remote.SetTaint(after, clusterv1.NodeUninitializedTaint, false)
		if err := remote.PatchNode(ctx, workload, node, after); err != nil {
			errs = append(errs, fmt.Errorf("updating labels, annotations and taints of Node %s: %w", node.Name, err))
			if apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
				break // It is no response of an API server: the next request would fail, too.
			}
		}
	}
	return errors.Join(errs...)
}
