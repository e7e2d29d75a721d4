package machines

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
)

// Delete deletes a Machine. If it has changed since it was read, that is a conflict. It makes sure that the Machine has our
// hook, so that its etcd member is removed after the drain (package membership): without the member, the API server on its Node
// fails.
func (mgr *Manager) Delete(ctx context.Context, cp *snapshot.ControlPlane, m *snapshot.Machine) error {
	if cp.StackedEtcd() {
		if err := membership.EnsureHook(ctx, mgr.Outside, m.Machine); err != nil {
			return err
		}
	}
	if err := mgr.Outside.Delete(ctx, m.Machine); err != nil {
		return fmt.Errorf("deleting Machine %s: %w", m.Name, err)
	}
	AwaitDeletion(ctx, mgr.Client, m)
	return nil
}

const (
	visiblePoll = 2 * time.Millisecond
	visibleWait = 5 * time.Second
)

// AwaitDeletion waits until the cache shows that a Machine is being deleted, so that the next reconcile does not work with a
// stale cache. It gives up silently after a while: a stale cache would only lead to a conflict.
func AwaitDeletion(ctx context.Context, cache client.Reader, m *snapshot.Machine) {
	_ = wait.PollUntilContextTimeout(ctx, visiblePoll, visibleWait, true, func(ctx context.Context) (bool, error) {
		seen := &clusterv1.Machine{}
		err := cache.Get(ctx, client.ObjectKeyFromObject(m), seen)
		return apierrors.IsNotFound(err) || err == nil && (seen.DeletionTimestamp != nil || seen.UID != m.UID), client.IgnoreNotFound(err)
	})
}
