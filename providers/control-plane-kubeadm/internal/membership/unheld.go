package membership

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// unheld returns a stale error if the cache does not show an operation that holds the control plane. It reads the control plane once for
// each process: only another leader can have answered an operation that this process has not seen.
func (r *Remover) unheld(ctx context.Context, cp *snapshot.ControlPlane) error {
	if _, checked := r.checked.Load(cp.KCP.UID); checked || cp.KCP.DeletionTimestamp != nil {
		return nil
	}
	live := &controlplanev1.KubeadmControlPlane{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(cp.KCP), live); err != nil {
		return fmt.Errorf("reading the control plane: %w", err)
	}
	if operation, err := fleetv1.OperationOf(live); err != nil || operation.Holds() || live.UID != cp.KCP.UID {
		return step.Stale("the cache does not show the operation that holds the control plane yet")
	}
	r.checked.Store(cp.KCP.UID, true)
	return nil
}

// Forget forgets what is remembered of a control plane that is gone.
func (r *Remover) Forget(controlPlane types.UID) {
	r.checked.Delete(controlPlane)
	r.joins.forget(controlPlane)
}
