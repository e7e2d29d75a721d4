package machines

import (
	"context"
	"fmt"

	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Delete deletes a Machine. If it has changed since it was read, that is a conflict. It makes sure that the Machine has our
// hook, so that its etcd member is removed after the drain (package membership): without the member, the API server on its Node
// fails.
func (mgr *Manager) Delete(ctx context.Context, cp *snapshot.ControlPlane, m *snapshot.Machine) error {
	if cp.StackedEtcd() {
		if err := membership.EnsureHook(ctx, mgr.Clients, m.Machine); err != nil {
			return err
		}
	}
	if err := mgr.Clients.Delete(ctx, m.Machine); err != nil {
		return fmt.Errorf("deleting Machine %s: %w", m.Name, err)
	}
	step.AwaitDeletion(ctx, mgr.Client, m.Machine)
	return nil
}
