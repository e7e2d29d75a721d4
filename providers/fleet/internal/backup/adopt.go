package backup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/backupstore"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/content"
)

// adopts returns the key of the archive that a backup adopts instead of making one; empty if there is none. It is of an EtcdBackup that was
// lost, or of the same one: clusterctl move and other programs copy metadata and spec, but no status.
func adopts(b *fleetv1.EtcdBackup) string { return b.Annotations[fleetv1.ArchiveAnnotation] }

// foreign reports whether the archive of a backup was made by another EtcdBackup.
func foreign(b *fleetv1.EtcdBackup) bool { return adopts(b) != "" && adopts(b) != keyOf(b) }

// mark records the key of the archive in the metadata, which is copied with the object.
func mark(b *fleetv1.EtcdBackup) {
	if b.Annotations == nil {
		b.Annotations = map[string]string{}
	}
	b.Annotations[fleetv1.ArchiveAnnotation] = b.Status.Archive.Key
}

// adopt takes the archive into the status. It must be of the same Cluster: who may create
// EtcdBackups in a namespace must not reach archives of others.
func (c *Controller) adopt(ctx context.Context, s *scope) error {
	b, key := s.backup, adopts(s.backup)
	if !strings.HasPrefix(key, b.Namespace+"/"+b.Spec.ClusterName+"/") || !strings.HasSuffix(key, content.Suffix) {
		return fmt.Errorf("%w: annotation %s: %q is no key of an archive of Cluster %s",
			errGone, fleetv1.ArchiveAnnotation, key, b.Spec.ClusterName)
	}
	from, err := c.opener.Named(ctx, b.Namespace, b.Spec.StoreRef.Name)
	if err != nil {
		return err
	}
	described, err := backupstore.Description(ctx, from, key)
	if errors.Is(err, backupstore.ErrDescription) {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	if err != nil {
		return err
	}
	status, is := &b.Status, &described.Status
	status.Archive, status.Etcd, status.KubernetesVersion = is.Archive, is.Etcd, is.KubernetesVersion
	if is.StartTime != nil {
		// When it was complete is not described. It is as old as what it contains, for those who look for the latest.
		status.StartTime, status.CompletionTime = is.StartTime, is.StartTime
	}
	return nil
}
