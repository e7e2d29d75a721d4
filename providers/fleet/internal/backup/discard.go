package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/backupstore"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/content"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// deleteForMove is the annotation that clusterctl move sets on objects before it deletes them: they go on in another management cluster.
const deleteForMove = "clusterctl.cluster.x-k8s.io/delete-for-move"

// discardRetry is how often the deletion of an archive is tried: nothing announces that a store works again.
const discardRetry = time.Minute

// discard deletes the archive, unless it must be kept. The archives of a namespace that is deleted as a whole are kept: what can
// restore its
// clusters does not go with them.
func (c *Controller) discard(ctx context.Context, s *scope) (step.Result, error) {
	b := s.backup
	if !controllerutil.ContainsFinalizer(b, fleetv1.EtcdBackupFinalizer) {
		return step.Stop(), nil
	}
	keep, err := c.keeps(ctx, b)
	if err != nil {
		return step.Result{}, err
	}
	if !keep {
		// Without a store, there is no archive to delete, unless one was completed.
		if err := c.deleteArchive(ctx, b); err != nil && (b.Status.Archive != nil || !errors.Is(err, backupstore.ErrNoStore)) {
			s.failed = fmt.Errorf("deleting the archive: %w", err)
			if errors.Is(err, backupstore.ErrInvalid) {
				s.failed = fmt.Errorf("%w; correct it, or set spec.deletionPolicy to Retain to keep the archive", s.failed)
			}
			return step.WaitAtMost(discardRetry, "the archive to be deleted"), nil
		}
	}
	controllerutil.RemoveFinalizer(b, fleetv1.EtcdBackupFinalizer)
	return step.Stop(), nil
}

// keeps reports whether an archive is kept when its EtcdBackup is deleted.
func (c *Controller) keeps(ctx context.Context, b *fleetv1.EtcdBackup) (bool, error) {
	if _, moved := b.Annotations[deleteForMove]; moved || b.Spec.DeletionPolicy == fleetv1.DeletionPolicyRetain {
		return true, nil
	}
	namespace := &corev1.Namespace{}
	if err := c.Live.Get(ctx, client.ObjectKey{Name: b.Namespace}, namespace); err != nil {
		return false, fmt.Errorf("reading Namespace %s: %w", b.Namespace, err)
	}
	return !namespace.DeletionTimestamp.IsZero(), nil
}

// deleteArchive deletes the archive and its description. Without a completed backup, there may be a part of one.
func (c *Controller) deleteArchive(ctx context.Context, b *fleetv1.EtcdBackup) error {
	from, err := c.opener.Named(ctx, b.Namespace, b.Spec.StoreRef.Name)
	if err != nil {
		return err
	}
	key := keyOf(b)
	if b.Status.Archive != nil {
		key = b.Status.Archive.Key
	}
	return errors.Join(from.Delete(ctx, key), from.Delete(ctx, key+content.DescriptionSuffix))
}
