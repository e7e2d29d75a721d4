package backup

import (
	"strings"
	"testing"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestAdopt: an EtcdBackup of an archive that exists adopts it, verifies it, and asks no etcd.
func TestAdopt(t *testing.T) {
	w := newWorld(t, newBackup(nil))
	w.reconcile(t)
	w.reconcile(t)
	made := w.backup(t)
	if made.Status.Archive == nil {
		t.Fatalf("no archive: %+v", made.Status)
	}
	again := newBackup(func(b *fleetv1.EtcdBackup) {
		b.UID = "another"
		b.Annotations = map[string]string{fleetv1.ArchiveAnnotation: made.Status.Archive.Key}
		b.Spec.Encryption.IdentitySecretRef.Name = "none"
		b.Spec.DeletionPolicy = fleetv1.DeletionPolicyRetain
	})
	other := newWorld(t, again)
	other.dir = w.dir
	other.restart(t)
	other.reconcile(t)
	other.reconcile(t)
	b := other.backup(t)
	if b.Status.Phase != fleetv1.BackupPhaseCompleted || b.Status.Archive.SHA256 != made.Status.Archive.SHA256 || b.Status.Verified == nil ||
		!b.Status.CompletionTime.Equal(made.Status.StartTime) || b.Status.Etcd.Revision != made.Status.Etcd.Revision {
		t.Errorf("status: %+v", b.Status)
	}
	if other.etcd.snapshots != 0 {
		t.Errorf("%d snapshots", other.etcd.snapshots)
	}
	testenv.Must(t, other.Delete(t.Context(), b))
	other.reconcile(t)
	if files := w.files(t); len(files) != 2 {
		t.Errorf("the archive was deleted: %v", files)
	}
}

// TestAdoptOfOthers: only archives of the Cluster are adopted, and only what is there.
func TestAdoptOfOthers(t *testing.T) {
	own := newBackup(nil).Namespace + "/c/"
	for _, key := range []string{"other/c/b-1.age", "../x.age", own + "b.json", own + "none.age"} {
		w := newWorld(t, newBackup(func(b *fleetv1.EtcdBackup) { b.Annotations = map[string]string{fleetv1.ArchiveAnnotation: key} }))
		w.reconcile(t)
		if b := w.backup(t); b.Status.Phase != fleetv1.BackupPhaseFailed || w.etcd.snapshots != 0 {
			t.Errorf("key %s: %+v", key, b.Status)
		}
		if got := w.state(t, fleetv1.BackupCompletedCondition); !strings.HasPrefix(got, "False Failed the backup cannot be made: ") {
			t.Errorf("key %s: %s", key, got)
		}
	}
}
