package backupstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// deleteForMove is the annotation that clusterctl move sets on objects before it deletes them: they go on in another management cluster.
const deleteForMove = "clusterctl.cluster.x-k8s.io/delete-for-move"

// named is how many backups the message names.
const named = 3

// protect adds the finalizer.
func protect(_ context.Context, s *scope) (step.Result, error) {
	if controllerutil.AddFinalizer(s.store, fleetv1.BackupStoreFinalizer) {
		return step.Checkpoint(), nil
	}
	return step.Done(), nil
}

// release removes the finalizer when no EtcdBackup needs the store to delete its archive. They are read from the API server: one that the
// cache does not show yet could never be deleted.
func (c *Controller) release(ctx context.Context, s *scope) (step.Result, error) {
	if !controllerutil.ContainsFinalizer(s.store, fleetv1.BackupStoreFinalizer) {
		return step.Stop(), nil
	}
	if _, moved := s.store.Annotations[deleteForMove]; !moved {
		backups := &fleetv1.EtcdBackupList{}
		if err := c.Live.List(ctx, backups, client.InNamespace(s.store.Namespace)); err != nil {
			return step.Done(), fmt.Errorf("listing EtcdBackups: %w", err)
		}
		var names []string
		for i := range backups.Items {
			if b := &backups.Items[i]; b.Spec.StoreRef.Name == s.store.Name && needs(b) {
				names = append(names, b.Name)
			}
		}
		if len(names) > 0 {
			slices.Sort(names)
			s.inUse = inUse(names)
			return step.Wait("EtcdBackups to be deleted"), nil // Their deletion is an event.
		}
	}
	controllerutil.RemoveFinalizer(s.store, fleetv1.BackupStoreFinalizer)
	return step.Stop(), nil
}

// needs reports whether a backup needs its store, so that its archive can be deleted with it.
func needs(b *fleetv1.EtcdBackup) bool {
	_, moved := b.Annotations[deleteForMove]
	return controllerutil.ContainsFinalizer(b, fleetv1.EtcdBackupFinalizer) && !moved && b.Status.Archive != nil &&
		b.Spec.DeletionPolicy != fleetv1.DeletionPolicyRetain
}

// inUse says which backups hold the deletion, and what to do.
func inUse(names []string) string {
	which := strings.Join(names[:min(named, len(names))], ", ")
	if more := len(names) - named; more > 0 {
		which += fmt.Sprintf(" and %d more", more)
	}
	return "its deletion waits for EtcdBackup " + which + ", whose archives are deleted with them: " +
		"delete them, or set their spec.deletionPolicy to Retain"
}

// ofBackup returns the store of a backup if it is being deleted: others are not checked whenever a backup expires.
func (c *Controller) ofBackup(ctx context.Context, obj client.Object) []reconcile.Request {
	b, ok := obj.(*fleetv1.EtcdBackup)
	if !ok {
		return nil
	}
	key, of := types.NamespacedName{Namespace: b.Namespace, Name: b.Spec.StoreRef.Name}, &fleetv1.BackupStore{}
	if err := c.Client.Get(ctx, key, of); err != nil || of.DeletionTimestamp.IsZero() {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// noLonger reports whether a backup needs its store no longer.
func noLonger(before, after *fleetv1.EtcdBackup) bool { return needs(before) && !needs(after) }
