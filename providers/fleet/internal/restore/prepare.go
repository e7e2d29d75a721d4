package restore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/backup/etcdsnapshot"
	"sigs.k8s.io/cluster-api/backup/restorescript"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/content"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/store"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
)

const (
	// bump is by how much the revision of etcd is raised: more than a cluster writes between two backups.
	bump = 1_000_000_000
	// placeholderName and placeholderPeer are those of the member until it starts: only the Machine knows its address.
	placeholderName = "restored"
	placeholderPeer = "https://restored.invalid:2380"
	// lifetime is how long the address of the data is valid, and renewal how long before its end it is renewed: a Machine that was just
	// created must be able to start.
	lifetime = 24 * time.Hour
	renewal  = 12 * time.Hour
)

// prepare makes the data that the first Machine downloads, before anything is destroyed.
func (c *Controller) prepare(ctx context.Context, s *scope) (operation.Outcome, error) {
	var size int64
	var notes []string
	err := c.withSnapshot(ctx, s, func(dir, snapshot string, from *content.Archive) (err error) {
		if notes, err = c.certificates(ctx, s, from); err != nil {
			return err
		}
		data := filepath.Join(dir, "data")
		err = c.found(ctx, snapshot, data, etcdsnapshot.Options{
			Name: placeholderName, PeerURL: placeholderPeer, BumpRevision: bump, MarkCompacted: true,
		})
		if err != nil {
			return damaged(err)
		}
		if err := os.Remove(snapshot); err != nil {
			return err
		}
		size, err = c.publish(ctx, s, data)
		return err
	})
	if err != nil {
		return operation.Outcome{}, err
	}
	for _, note := range notes {
		s.warn(note)
	}
	return operation.Done(fmt.Sprintf("stored the data of etcd, encrypted, %d bytes, as %s of BackupStore %s", size, s.restore.Status.Data.Key,
		s.source.store)), nil
}

// publish stores a data directory, and creates the Secret with what a Machine needs to use it.
func (c *Controller) publish(ctx context.Context, s *scope, dir string) (int64, error) {
	to, err := c.opener.Named(ctx, s.restore.Namespace, s.source.store)
	if err != nil {
		return 0, err
	}
	sealed, err := newSealed()
	if err != nil {
		return 0, err
	}
	key := dataKey(s.restore)
	reader, writer := io.Pipe()
	go func() {
		err := pack(ctx, sealed.writer(writer), dir)
		_ = writer.CloseWithError(err) // It never fails.
	}()
	err = to.Put(ctx, key, reader)
	_ = reader.CloseWithError(errors.New("the store takes no more")) // It never fails, and ends the writer.
	if err != nil {
		return 0, err
	}
	return sealed.size, c.hand(ctx, s, to, sealed.config(), sealed.size)
}

// hand gives the data to the Machine: it signs a URL, and writes the Secret.
func (c *Controller) hand(ctx context.Context, s *scope, in store.Store, config restorescript.Config, size int64) error {
	key, expires := dataKey(s.restore), c.Clock.Now().Add(lifetime)
	var err error
	if config.URL, err = c.address(ctx, s.restore, in, key); err != nil {
		return err
	}
	if err := c.writeSecret(ctx, s.restore, config); err != nil {
		return err
	}
	s.restore.Status.Data = &fleetv1.RestoreDataStatus{
		Key: key, SizeBytes: size, ExpirationTime: &metav1.Time{Time: expires.UTC().Truncate(time.Second)},
	}
	return nil
}

// renew makes another URL if the Machine has not been created yet, and the present one may end before it starts, or is served no more.
func (c *Controller) renew(ctx context.Context, s *scope) error {
	data := s.restore.Status.Data
	config, err := c.readSecret(ctx, s.restore)
	if err != nil {
		return err
	}
	in, err := c.opener.Named(ctx, s.restore.Namespace, s.restore.Status.Backup.StoreName)
	if err != nil {
		return err
	}
	_, err = in.URL(ctx, data.Key, lifetime)
	moved := errors.Is(err, store.ErrNoURL) && c.server != nil && !c.server.Serves(config.URL)
	if !moved && data.ExpirationTime.Sub(c.Clock.Now()) > renewal {
		return nil
	}
	return c.hand(ctx, s, in, config, data.SizeBytes)
}

// dataKey returns the key of the data in the store.
func dataKey(r *fleetv1.ControlPlaneRestore) string {
	return r.Namespace + "/" + r.Spec.ClusterName + "/restore-" + string(r.UID) + ".tar.gz.enc"
}

// warn records what users should look at.
func (s *scope) warn(note string) {
	status := &s.restore.Status
	note = operation.Brief(note)
	if !slices.Contains(status.Warnings, note) {
		status.Warnings = append(status.Warnings, note)
	}
}

// pack writes a gzipped tar of etcd's data directory.
func pack(ctx context.Context, w io.Writer, dir string) (err error) {
	defer failsafe.Recover("packing the data of etcd", &err)
	return writeTar(ctx, w, dir)
}
