package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"filippo.io/age"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/backup/etcdsnapshot"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/content"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/store"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// verifyRetry is how often a verification is tried that could not be done: nothing announces that a store, or a disk, works again.
	verifyRetry = 5 * time.Minute
	// verifyTimeout is how long one may take.
	verifyTimeout = time.Hour
)

// verify reads the archive back. An archive that is damaged has failed.
func (c *Controller) verify(ctx context.Context, s *scope) (step.Result, error) {
	b := s.backup
	if b.Status.Phase != fleetv1.BackupPhaseCompleted || b.Status.Verified != nil || b.Status.Archive == nil {
		return step.Done(), nil
	}
	attempt, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	done, err := c.read(attempt, b)
	switch {
	case err == nil:
		done.Time = metav1.Time{Time: c.Clock.Now()}
		b.Status.Verified = done
		return step.Done(), nil
	case ctx.Err() != nil:
		return step.Result{}, ctx.Err() // The manager ends.
	case errors.Is(err, content.ErrDamaged):
		s.unverified, b.Status.Phase = err, fleetv1.BackupPhaseFailed
		s.failed = err
		step.Warning(ctx, "BackupDamaged", "%v", err)
		return step.Stop(), nil
	}
	s.unverified = err
	return step.WaitAtMost(verifyRetry, "the archive to be verified"), nil
}

// reasonOf returns the reason of the condition Verified.
func reasonOf(err error) string {
	if errors.Is(err, content.ErrDamaged) {
		return fleetv1.BackupDamagedReason
	}
	return fleetv1.BackupNotVerifiedReason
}

// method returns how an archive must be verified. One that was adopted has been verified before: without other words, its checksum
// suffices, since all archives of a management cluster may be adopted at once.
func method(b *fleetv1.EtcdBackup) fleetv1.VerificationMethod {
	spec := &b.Spec
	switch {
	case spec.Verification == "" && foreign(b):
		return fleetv1.VerificationChecksum
	case spec.Encryption.IdentitySecretRef == nil:
		return fleetv1.VerificationChecksum // Nothing can be decrypted.
	case spec.Verification == "":
		return fleetv1.VerificationRestored
	}
	return spec.Verification
}

// read reads the archive once: for its checksum and, if there is a key, for its content.
func (c *Controller) read(ctx context.Context, b *fleetv1.EtcdBackup) (*fleetv1.VerificationStatus, error) {
	how := method(b)
	var keys []age.Identity
	var err error
	if how != fleetv1.VerificationChecksum {
		if keys, err = identities(ctx, c.Live, b.Namespace, b.Spec.Encryption); err != nil {
			return nil, err
		}
	}
	from, err := c.opener.Named(ctx, b.Namespace, b.Spec.StoreRef.Name)
	if err != nil {
		return nil, err
	}
	body, err := from.Get(ctx, b.Status.Archive.Key)
	if err != nil {
		if errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("%w: it is missing in the store", content.ErrDamaged)
		}
		return nil, fmt.Errorf("reading the archive: %w", err)
	}
	defer func() { _ = body.Close() }() // It was only read.
	counted := &counter{hash: sha256.New()}
	tee := io.TeeReader(body, counted)
	done := &fleetv1.VerificationStatus{Method: how}
	if how != fleetv1.VerificationChecksum {
		if err := c.inspect(ctx, b, tee, keys, done); err != nil {
			return nil, err
		}
	}
	if _, err := io.Copy(io.Discard, tee); err != nil {
		return nil, fmt.Errorf("reading the archive: %w", err)
	}
	if sum := hex.EncodeToString(counted.hash.Sum(nil)); sum != b.Status.Archive.SHA256 {
		return nil, fmt.Errorf("%w: its SHA-256 is %s, not that of what was written", content.ErrDamaged, sum)
	}
	return done, nil
}

// inspect decrypts the archive, and opens the snapshot in it. The snapshot is in a file meanwhile.
func (c *Controller) inspect(
	ctx context.Context, b *fleetv1.EtcdBackup, from io.Reader, keys []age.Identity, done *fleetv1.VerificationStatus,
) error {
	dir, err := os.MkdirTemp(c.workDir, "verify-*") // Only this user can read it.
	if err != nil {
		return fmt.Errorf("verifying the archive: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // What is left is removed when the manager starts.
	file := filepath.Join(dir, content.SnapshotEntry)
	all, err := content.Extract(from, keys, file)
	if err != nil {
		return err
	}
	if err := check(&all.Metadata, b); err != nil {
		return err
	}
	info, err := etcdsnapshot.Inspect(ctx, file)
	if err != nil {
		return damaged(err)
	}
	b.Status.Etcd.Revision = info.Revision
	if done.Method != fleetv1.VerificationRestored {
		return nil
	}
	select {
	case c.drill <- struct{}{}:
		defer func() { <-c.drill }()
	case <-ctx.Done():
		return fmt.Errorf("waiting for another verification: %w", ctx.Err())
	}
	drilled, err := etcdsnapshot.Drill(ctx, file, dir, nil)
	if err != nil {
		return damaged(err)
	}
	if drilled.Undecodable > 0 || drilled.Keys == 0 {
		return fmt.Errorf("%w: of %d keys in its snapshot, %d cannot be decoded", content.ErrDamaged, drilled.Keys, drilled.Undecodable)
	}
	done.Keys, done.EncryptedKeys = int64(drilled.Keys), int64(drilled.Encrypted)
	return nil
}

// damaged returns the error of a snapshot, as content.ErrDamaged if another attempt would find the same.
func damaged(err error) error {
	if errors.Is(err, etcdsnapshot.ErrDamaged) || errors.Is(err, etcdsnapshot.ErrTruncated) {
		return fmt.Errorf("%w: its snapshot: %w", content.ErrDamaged, err)
	}
	return fmt.Errorf("verifying the snapshot: %w", err)
}

// check verifies that an archive is of the Cluster.
func check(of *content.Metadata, b *fleetv1.EtcdBackup) error {
	if of.Cluster != b.Spec.ClusterName || of.Namespace != b.Namespace {
		return fmt.Errorf("%w: it is of Cluster %s/%s", content.ErrDamaged, of.Namespace, of.Cluster)
	}
	return nil
}
