package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"filippo.io/age"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/backup/archive"
	"sigs.k8s.io/cluster-api/backup/etcdsnapshot"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/content"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/member"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/store"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// defaultTimeout is BackupSettings.TimeoutSeconds if it is not set.
	defaultTimeout = time.Hour
	// firstRetry and lastRetry are the pauses after an attempt that failed: nothing announces that a cluster or a store works again.
	firstRetry, lastRetry = 10 * time.Second, 5 * time.Minute
)

// errGone is matched by errors that no later attempt can overcome.
var errGone = errors.New("the backup cannot be made")

// store makes the archive. The worker is occupied meanwhile: members and stores that send nothing end it soon.
func (c *Controller) store(ctx context.Context, s *scope) (step.Result, error) {
	status := &s.backup.Status
	if s.backup.Ended() {
		return step.Done(), nil
	}
	now := c.Clock.Now()
	left := deadline(s.backup).Sub(now)
	// A wait that is longer than the pause is due to a clock that was set back.
	wait := pause(status.Attempts) - now.Sub(started(s.backup))
	if status.Attempts > 0 && wait > 0 && wait <= pause(status.Attempts) && left > 0 {
		s.failed, status.Phase = errors.New(lastFailure(s.backup)), fleetv1.BackupPhasePending
		return step.WaitAtMost(min(wait, left), "the next attempt"), nil
	}
	if left <= 0 {
		return c.fail(s, errors.New(lastFailure(s.backup)))
	}
	status.Attempts++
	status.StartTime = &metav1.Time{Time: now}
	attempt, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	do := c.make
	if adopts(s.backup) != "" {
		do = c.adopt
	}
	err := do(attempt, s)
	switch {
	case err == nil:
		mark(s.backup)
		status.Phase = fleetv1.BackupPhaseCompleted
		if status.CompletionTime == nil {
			status.CompletionTime = &metav1.Time{Time: c.Clock.Now()}
		}
		step.Event(ctx, "BackupCompleted", "A snapshot of member %s, revision %d, is stored as %s", status.Etcd.Member, status.Etcd.Revision,
			status.Archive.Key)
		return step.Wait("its status to be written"), nil // The write is an event.
	case ctx.Err() != nil:
		return step.Result{}, ctx.Err() // The manager ends.
	case errors.Is(err, errGone) || errors.Is(err, member.ErrNotSupported):
		return c.fail(s, err)
	}
	s.failed, status.Phase = err, fleetv1.BackupPhasePending
	step.WarningTransition(ctx, "BackupAttemptFailed", "%s", condition.Brief(err.Error()))
	return step.WaitAtMost(min(pause(status.Attempts), max(deadline(s.backup).Sub(c.Clock.Now()), time.Second)), "the next attempt"), nil
}

// fail ends the backup.
func (c *Controller) fail(s *scope, err error) (step.Result, error) {
	s.failed = err
	s.backup.Status.Phase, s.backup.Status.CompletionTime = fleetv1.BackupPhaseFailed, &metav1.Time{Time: c.Clock.Now()}
	return step.Stop(), nil
}

// pause returns how long to wait after so many attempts.
func pause(attempts int32) time.Duration {
	return min(firstRetry<<min(max(attempts-1, 0), 10), lastRetry)
}

func started(b *fleetv1.EtcdBackup) time.Time {
	if b.Status.StartTime == nil {
		return time.Time{}
	}
	return b.Status.StartTime.Time
}

// make makes one attempt.
func (c *Controller) make(ctx context.Context, s *scope) error {
	cluster := &clusterv1.Cluster{}
	if err := c.Live.Get(ctx, clusterKey(s.backup), cluster); err != nil {
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("%w: Cluster %s does not exist", errGone, s.backup.Spec.ClusterName)
		}
		return fmt.Errorf("reading Cluster %s: %w", s.backup.Spec.ClusterName, err)
	}
	keys, err := identities(ctx, c.Live, s.backup.Namespace, s.backup.Spec.Encryption)
	if err != nil {
		return err
	}
	to, err := recipients(s.backup.Spec.Encryption, keys)
	if err != nil {
		return err
	}
	target, err := c.opener.Named(ctx, s.backup.Namespace, s.backup.Spec.StoreRef.Name)
	if err != nil {
		return err
	}
	control, err := c.connect(ctx, clusterKey(s.backup))
	if err != nil {
		return err
	}
	defer control.Close()
	chosen, err := control.Choose(ctx)
	if err != nil {
		return err
	}
	stream, err := control.Snapshot(ctx, chosen)
	if err != nil {
		return err
	}
	defer stream.Close()
	return c.send(ctx, s, &sending{cluster: cluster, to: to, member: chosen, next: stream.Next, target: target})
}

// sending is what an attempt sends, and where to.
type sending struct {
	cluster *clusterv1.Cluster
	to      []age.Recipient
	member  member.Member
	next    func() ([]byte, uint64, error)
	target  store.Store
}

// send writes the archive to the store, and a description beside it, which has no secrets: by it, archives are found after their
// EtcdBackups were lost.
func (c *Controller) send(ctx context.Context, s *scope, out *sending) error {
	secrets, err := c.secrets(ctx, clusterKey(s.backup))
	if err != nil {
		return err
	}
	objects, version, err := c.objects(ctx, out.cluster, out.member.Node)
	if err != nil {
		return err
	}
	about, err := describe(s, out.cluster, out.member, version, metav1.Time{Time: c.Clock.Now()})
	if err != nil {
		return err
	}
	read, err := etcdsnapshot.NewStream(out.next)
	if err != nil {
		return err
	}
	key := keyOf(s.backup)
	counted := &counter{hash: sha256.New()}
	far := &progress{content: read, member: out.member.Node, size: read.Size()}
	reader, writer := io.Pipe()
	go func() {
		err := write(writer, out.to, []entry{
			{content.MetadataEntry, int64(len(about)), bytes.NewReader(about)},
			{content.SecretsEntry, int64(len(secrets)), bytes.NewReader(secrets)},
			{content.ObjectsEntry, int64(len(objects)), bytes.NewReader(objects)},
			{content.SnapshotEntry, read.Size(), store.NewLimiter(c.bytesPerSecond).Reader(ctx, far)},
		})
		_ = writer.CloseWithError(err) // It never fails.
	}()
	err = c.watched(ctx, s, far, func() error { return out.target.Put(ctx, key, io.TeeReader(reader, counted)) })
	_ = reader.CloseWithError(errors.New("the store takes no more")) // It never fails, and ends the writer.
	if err != nil {
		return err
	}
	status, summary := &s.backup.Status, read.Summary()
	status.Archive = &fleetv1.ArchiveStatus{
		Key: key, SizeBytes: counted.size, SHA256: hex.EncodeToString(counted.hash.Sum(nil)), Contents: []string{contentObjects, contentPKI},
	}
	status.Etcd = &fleetv1.SnapshotStatus{
		Member: out.member.Node, ClusterID: fmt.Sprintf("%x", out.member.ClusterID), SizeBytes: summary.Size,
		Revision: out.member.Revision,
		SHA256:   hex.EncodeToString(summary.SHA256[:]), Version: out.member.Version,
	}
	status.KubernetesVersion = version
	description, err := json.MarshalIndent(s.backup, "", "  ")
	if err != nil {
		return err
	}
	return out.target.Put(ctx, key+content.DescriptionSuffix, bytes.NewReader(description))
}

// entry is an entry of an archive.
type entry struct {
	name    string
	size    int64
	content io.Reader
}

// write writes an archive.
func write(to io.Writer, recipients []age.Recipient, entries []entry) (err error) {
	defer failsafe.Recover("writing the archive", &err)
	w, err := archive.NewWriter(to, recipients...)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := w.Add(e.name, e.size, e.content); err != nil {
			return err
		}
	}
	return w.Close()
}

// counter counts and hashes what is written to it.
type counter struct {
	size int64
	hash hash.Hash
}

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	c.size += int64(len(p))
	return c.hash.Write(p)
}
