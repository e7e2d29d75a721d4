package machines

import (
	"context"
	"errors"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
)

// Restore creates the Machine that runs kubeadm init with the data of an operation. The caller has checked that there are no Machines.
func (mgr *Manager) Restore(ctx context.Context, cp *snapshot.ControlPlane, failureDomain string, operation fleetv1.Operation) error {
	err := mgr.create(ctx, cp, failureDomain, Initialize, &operation)
	announce(ctx, cp, err)
	return err
}

// CompleteRestored is Complete for the Machine of Restore alone.
func (mgr *Manager) CompleteRestored(ctx context.Context, cp *snapshot.ControlPlane) error {
	var errs []error
	for _, m := range cp.Machines {
		if restores(m) && !m.Deleting() {
			errs = append(errs, mgr.completeMachine(ctx, cp, m, Initialize))
		}
	}
	err := errors.Join(errs...)
	announce(ctx, cp, err)
	return err
}

// restores reports whether Restore has created the Machine. That is recorded on the Machine itself: without its KubeadmConfig, and when
// the operation has ended, it would be taken for one that joins.
func restores(m *snapshot.Machine) bool { return m.Annotations[fleetv1.RestoreDataAnnotation] != "" }
