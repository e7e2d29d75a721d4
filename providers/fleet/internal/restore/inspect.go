package restore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/backup/archive"
	"sigs.k8s.io/cluster-api/backup/etcdsnapshot"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/content"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/store"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// inspect reads the archive, and records what it contains.
func (c *Controller) inspect(ctx context.Context, s *scope) (operation.Outcome, error) {
	var found fleetv1.RestoredBackup
	err := c.withSnapshot(ctx, s, func(_, snapshot string, from *content.Archive) error {
		info, err := etcdsnapshot.Inspect(ctx, snapshot)
		if err != nil {
			return damaged(err)
		}
		counts, err := etcdsnapshot.Count(ctx, snapshot, classOf)
		if err != nil {
			return damaged(err)
		}
		about := from.Metadata
		found = fleetv1.RestoredBackup{
			Namespace: about.Namespace, Cluster: about.Cluster, ClusterUID: about.ClusterUID, Time: &metav1.Time{Time: about.Time.Time},
			EtcdVersion: about.EtcdVersion, KubernetesVersion: about.KubernetesVersion, StoreName: s.source.store, Key: s.source.key,
			Revision: info.Revision, SizeBytes: info.Size, Keys: int64(info.Keys),
			LoadBalancers: int64(counts[loadBalancer]), PersistentVolumes: int64(counts[persistentVolume]),
		}
		found.OtherCluster, err = c.isOther(ctx, s, from)
		return err
	})
	if err != nil {
		return operation.Outcome{}, err
	}
	if reason := versionsFit(s.kcp, found.KubernetesVersion, found.EtcdVersion); reason != "" {
		return operation.Outcome{}, operation.Refusal(reason)
	}
	s.restore.Status.Backup = &found
	return operation.Done(fmt.Sprintf("read %s of BackupStore %s: revision %d with %d keys, of %s", found.Key, found.StoreName, found.Revision,
		found.Keys, found.Time.UTC().Format("2006-01-02 15:04:05 MST"))), nil
}

// withSnapshot calls use with an empty directory, and the snapshot of the archive in it, which only this user can read, and deletes them.
// One archive is on the disk at a time.
func (c *Controller) withSnapshot(ctx context.Context, s *scope, use func(dir, snapshot string, from *content.Archive) error) error {
	select {
	case c.disk <- struct{}{}:
		defer func() { <-c.disk }()
	case <-ctx.Done():
		return fmt.Errorf("waiting for another restore: %w", ctx.Err())
	}
	keys, err := content.Identities(ctx, c.Live, s.restore.Namespace, s.source.identity)
	if err != nil {
		return err
	}
	from, err := c.opener.Named(ctx, s.restore.Namespace, s.source.store)
	if err != nil {
		return err
	}
	body, err := from.Get(ctx, s.source.key)
	if errors.Is(err, store.ErrNotFound) {
		return operation.Refusal(fmt.Sprintf("archive %s does not exist in BackupStore %s", s.source.key, s.source.store))
	}
	if err != nil {
		return fmt.Errorf("reading the archive: %w", err)
	}
	defer func() { _ = body.Close() }() // It was only read.
	dir, err := os.MkdirTemp(c.workDir, "restore-*")
	if err != nil {
		return fmt.Errorf("reading the archive: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // What is left is removed when the manager starts.
	snapshot := filepath.Join(dir, content.SnapshotEntry)
	read, err := content.Extract(body, keys, snapshot)
	switch {
	case errors.Is(err, archive.ErrWrongKey):
		return operation.Refusal(fmt.Sprintf("Secret %s does not have the key of the archive: %v", s.source.identity, err))
	case errors.Is(err, content.ErrDamaged):
		return operation.Refusal(fmt.Sprintf("%v: use another backup", err))
	case err != nil:
		return err
	case read.Metadata.FormatVersion > content.FormatVersion:
		return operation.Refusal(fmt.Sprintf("the archive has format %d, which is newer than what this version of the fleet provider reads: "+
			"upgrade it",
			read.Metadata.FormatVersion))
	}
	return use(dir, snapshot, read)
}

// damaged returns the error of a snapshot, as a refusal if another attempt would find the same.
func damaged(err error) error {
	if errors.Is(err, etcdsnapshot.ErrDamaged) || errors.Is(err, etcdsnapshot.ErrTruncated) {
		return operation.Refusal(fmt.Sprintf("the archive is damaged: its snapshot: %v: use another backup", err))
	}
	return fmt.Errorf("reading the snapshot: %w", err)
}

// isOther reports whether an archive is of another Cluster. One of the same name is the same if it has the same UID or the same CA: objects
// that were moved, or created again from their manifests, have another UID.
func (c *Controller) isOther(ctx context.Context, s *scope, from *content.Archive) (bool, error) {
	about := from.Metadata
	if about.Cluster != s.cluster.Name || about.Namespace != s.cluster.Namespace {
		return true, nil
	}
	if about.ClusterUID == s.cluster.UID {
		return false, nil
	}
	archived := secretNamed(from, pki.SecretName(about.Cluster, pki.ClusterCA))
	present, err := c.secret(ctx, pki.SecretKey(s.clusterKey(), pki.ClusterCA))
	if err != nil || present == nil {
		return false, err
	}
	return archived == nil || !bytes.Equal(archived.Data[pki.CertificateKey], present.Data[pki.CertificateKey]), nil
}

// secretNamed returns a Secret of an archive; nil if it has none of the name.
func secretNamed(from *content.Archive, name string) *corev1.Secret {
	for i := range from.Secrets {
		if from.Secrets[i].Name == name {
			return &from.Secrets[i]
		}
	}
	return nil
}

// Classes of keys that matter to the controllers of a restored cluster.
const (
	loadBalancer     = "LoadBalancer"
	persistentVolume = "PersistentVolume"
)

// Prefixes of keys of API servers.
const (
	servicePrefix = "/registry/services/specs/"
	volumePrefix  = "/registry/persistentvolumes/"
)

// protobufPrefix is how values begin that are encoded as protobuf.
var protobufPrefix = []byte("k8s\x00")

// classOf returns the class of a key. Services that the API server has encrypted have none.
func classOf(key string, value []byte) string {
	switch {
	case strings.HasPrefix(key, volumePrefix):
		return persistentVolume
	case !strings.HasPrefix(key, servicePrefix):
		return ""
	}
	service := &corev1.Service{}
	if raw, ok := bytes.CutPrefix(value, protobufPrefix); ok {
		var object runtime.Unknown
		if object.Unmarshal(raw) != nil || service.Unmarshal(object.Raw) != nil {
			return ""
		}
	} else if json.Unmarshal(value, service) != nil {
		return ""
	}
	if service.Spec.Type == corev1.ServiceTypeLoadBalancer {
		return loadBalancer
	}
	return ""
}
