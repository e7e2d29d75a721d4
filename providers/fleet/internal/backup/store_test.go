package backup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/member"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
)

func TestStepsAreDocumented(t *testing.T) {
	testenv.StepsDocumented(t, (&Controller{}).declared().Names())
}

// name is the file of the archive in the store.
const name = "nightly/default/c/b-etcdbackup-b.age"

func TestStore(t *testing.T) {
	w := newWorld(t, newBackup(nil))
	w.reconcile(t)
	w.reconcile(t)
	if diff := cmp.Diff([]string{name, name + ".json"}, w.files(t)); diff != "" {
		t.Errorf("files in the store, -want +got:\n%s", diff)
	}
	b := w.backup(t)
	want := fleetv1.SnapshotStatus{
		Member: "m-1", ClusterID: "abc", Revision: 42, SizeBytes: int64(len(database()) + 32), SHA256: b.Status.Etcd.SHA256, Version: "3.6.8",
	}
	if diff := cmp.Diff(&want, b.Status.Etcd); diff != "" {
		t.Errorf("snapshot, -want +got:\n%s", diff)
	}
	raw, err := os.ReadFile(filepath.Join(w.dir, name))
	testenv.Must(t, err)
	if b.Status.Archive.SizeBytes != int64(len(raw)) || strings.Contains(string(raw), "PRIVATE KEY") {
		t.Errorf("the archive has %d bytes, status says %d; or it is not encrypted", len(raw), b.Status.Archive.SizeBytes)
	}
	if got := w.state(t, fleetv1.BackupVerifiedCondition); got != "True Verified " || b.Status.Verified.Method != fleetv1.VerificationChecksum {
		t.Errorf("Verified is %s", got)
	}
	w.Writes = nil
	w.reconcile(t)
	if len(w.Writes) > 0 || w.etcd.snapshots != 1 {
		t.Errorf("a backup that has completed is left alone, but: %v, %d snapshots", w.Writes, w.etcd.snapshots)
	}
}

func TestAttempts(t *testing.T) {
	tests := []struct {
		reason string
		change func(*fleetv1.EtcdBackup)
		broken func(*world)
		want   string
		again  time.Duration
	}{
		{reason: "a cluster that does not respond", broken: func(w *world) { w.etcd.refuses = errors.New("connection refused") },
			want: "False Pending connection refused", again: 10 * time.Second},
		{reason: "a snapshot that breaks off is not stored", broken: func(w *world) { w.etcd.cut = 50000 }, again: 10 * time.Second,
			want: "False Pending storing default/c/b-etcdbackup-b.age: adding entry etcd.db: the snapshot is truncated: etcd has sent 50000 of 131104 bytes"},
		{reason: "etcd that is elsewhere", broken: func(w *world) { w.etcd.refuses = member.ErrNotSupported },
			want: "False Failed only control planes of kubeadm with etcd on their Machines are supported"},
		{reason: "a Cluster that does not exist", change: func(b *fleetv1.EtcdBackup) { b.Spec.ClusterName = "other" },
			want: "False Failed the backup cannot be made: Cluster other does not exist"},
		{reason: "a store that does not exist", change: func(b *fleetv1.EtcdBackup) { b.Spec.StoreRef.Name = "other" }, again: 10 * time.Second,
			want: "False Pending BackupStore other does not exist in namespace default"},
		{reason: "a public key that is none", change: func(b *fleetv1.EtcdBackup) { b.Spec.Encryption.Recipients = []string{"age1x"} },
			want: "False Pending spec.encryption is invalid: recipients: ", again: 10 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, newBackup(tt.change))
			if tt.broken != nil {
				tt.broken(w)
			}
			if after := w.reconcile(t); after != tt.again {
				t.Errorf("the next attempt is in %s, want %s", after, tt.again)
			}
			if got := w.state(t, fleetv1.BackupCompletedCondition); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if files := w.files(t); len(files) > 0 {
				t.Errorf("the store has %v", files)
			}
		})
	}
}

// TestBackoff: attempts are ever rarer, until the time of the backup is over; and it completes if the cause is mended before.
func TestBackoff(t *testing.T) {
	w := newWorld(t, newBackup(nil))
	w.etcd.refuses = errors.New("connection refused")
	var pauses []time.Duration
	for range 20 {
		after := w.reconcile(t)
		if after == 0 {
			break
		}
		pauses = append(pauses, after)
		w.Clock.Step(after)
	}
	want := []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, 290 * time.Second}
	if diff := cmp.Diff(want, pauses); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := w.state(t, fleetv1.BackupCompletedCondition); got != "False Failed connection refused" {
		t.Errorf("after its time: %s", got)
	}

	w = newWorld(t, newBackup(nil))
	w.etcd.refuses = errors.New("connection refused")
	w.reconcile(t)
	w.etcd.refuses = nil
	w.Clock.Step(-time.Hour) // A clock that was set back delays nothing.
	w.reconcile(t)
	if got := w.state(t, fleetv1.BackupCompletedCondition); got != "True Completed " {
		t.Errorf("after the cause is mended: %s", got)
	}
}

// TestInterrupted ends the process after each request: the archive is complete, once, and nothing else is in the store.
func TestInterrupted(t *testing.T) {
	killed := errors.New("killed")
	for n := 1; ; n++ {
		w := newWorld(t, newBackup(func(b *fleetv1.EtcdBackup) { b.Finalizers, b.Labels = nil, nil }))
		requests := 0
		w.After = func(r fakeapi.Request, err error) error {
			if requests++; r.IsWrite() && requests >= n {
				w.After = nil
				return killed
			}
			return err
		}
		_, err := w.runner.Reconcile(t.Context(), requestOf(newBackup(nil)))
		done := w.After != nil
		if err != nil && !errors.Is(err, killed) {
			t.Fatal(err)
		}
		w.After = nil
		for range 4 {
			w.restart(t)
			w.Clock.Step(10 * time.Minute / 5)
			w.reconcile(t)
		}
		if got := w.state(t, fleetv1.BackupVerifiedCondition); got != "True Verified " || len(w.files(t)) != 2 {
			t.Fatalf("killed after request %d: %s, files %v", n, got, w.files(t))
		}
		if done {
			return
		}
	}
}

// TestStaleCluster: a Cluster that is not in the cache yet is no reason to fail.
func TestStaleCluster(t *testing.T) {
	w := newWorld(t, newBackup(nil))
	cluster := &clusterv1.Cluster{}
	testenv.Must(t, w.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "c"}, cluster))
	w.Cache.Hide(cluster)
	w.reconcile(t)
	if got := w.state(t, fleetv1.BackupCompletedCondition); got != "True Completed " {
		t.Error(got)
	}
}

func TestVerify(t *testing.T) {
	tests := []struct {
		reason    string
		change    func(*fleetv1.EtcdBackup)
		meanwhile func(t *testing.T, w *world)
		want      string
		phase     fleetv1.BackupPhase
	}{
		{reason: "an archive that was changed", phase: fleetv1.BackupPhaseFailed, want: "False Damaged the archive is damaged: its SHA-256 is ",
			meanwhile: func(t *testing.T, w *world) {
				t.Helper()
				testenv.Must(t, os.WriteFile(filepath.Join(w.dir, name), []byte("x"), 0o600))
			}},
		{reason: "an archive that was deleted", phase: fleetv1.BackupPhaseFailed,
			want:      "False Damaged the archive is damaged: it is missing in the store",
			meanwhile: func(t *testing.T, w *world) { t.Helper(); testenv.Must(t, os.Remove(filepath.Join(w.dir, name))) }},
		{reason: "a snapshot that is no database", phase: fleetv1.BackupPhaseFailed,
			change: func(b *fleetv1.EtcdBackup) { b.Spec.Verification = fleetv1.VerificationOpened },
			want:   "False Damaged the archive is damaged: its snapshot: "},
		{reason: "another key than that of the archive is corrected by users", phase: fleetv1.BackupPhaseCompleted,
			change: func(b *fleetv1.EtcdBackup) { b.Spec.Verification = fleetv1.VerificationOpened },
			want:   "False NotVerified reading the archive: no identity can decrypt the archive",
			meanwhile: func(t *testing.T, w *world) {
				t.Helper()
				other := newWorld(t, newBackup(nil))
				secret := secretNamed("key")
				testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
				secret.Data[fleetv1.IdentityKey] = []byte(other.key.String())
				testenv.Must(t, w.Update(t.Context(), secret))
			}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, newBackup(tt.change))
			w.reconcile(t)
			if tt.meanwhile != nil {
				tt.meanwhile(t, w)
			}
			w.Clock.Step(w.reconcile(t)) // Conditions for people are held back.
			w.reconcile(t)
			if got := w.state(t, fleetv1.BackupVerifiedCondition); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if got := w.backup(t).Status.Phase; got != tt.phase {
				t.Errorf("the phase is %s, want %s", got, tt.phase)
			}
		})
	}
}

func TestDiscard(t *testing.T) {
	tests := []struct {
		reason    string
		change    func(*fleetv1.EtcdBackup)
		meanwhile func(t *testing.T, w *world)
		kept      bool
		want      string
	}{
		{reason: "the archive goes with its EtcdBackup"},
		{reason: "spec.deletionPolicy keeps it", kept: true,
			change: func(b *fleetv1.EtcdBackup) { b.Spec.DeletionPolicy = fleetv1.DeletionPolicyRetain }},
		{reason: "a move deletes the source, and no archive", kept: true,
			change: func(b *fleetv1.EtcdBackup) { b.Annotations = map[string]string{deleteForMove: ""} }},
		{reason: "a namespace that is deleted as a whole takes no archive with it", kept: true,
			meanwhile: func(t *testing.T, w *world) {
				t.Helper()
				namespace := namespaceNamed("default")
				testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace))
				namespace.Finalizers = []string{"test/hold"}
				testenv.Must(t, w.Update(t.Context(), namespace), w.Delete(t.Context(), namespace))
			}},
		{reason: "without its store, the EtcdBackup stays, and says what to do", kept: true,
			want: "False DeletingArchive deleting the archive: BackupStore disk does not exist in namespace default; " +
				"correct it, or set spec.deletionPolicy to Retain to keep the archive",
			meanwhile: func(t *testing.T, w *world) {
				t.Helper()
				testenv.Must(t, w.Delete(t.Context(), &fleetv1.BackupStore{ObjectMeta: meta("BackupStore", "disk")}))
			}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, newBackup(tt.change))
			w.reconcile(t)
			w.reconcile(t)
			if tt.meanwhile != nil {
				tt.meanwhile(t, w)
			}
			testenv.Must(t, w.Delete(t.Context(), w.backup(t)))
			w.reconcile(t)
			if kept := len(w.files(t)) == 2; kept != tt.kept {
				t.Errorf("the archive is kept: %v, want %v", kept, tt.kept)
			}
			err := w.Get(t.Context(), client.ObjectKeyFromObject(newBackup(nil)), &fleetv1.EtcdBackup{})
			if tt.want != "" {
				if got := w.state(t, fleetv1.BackupCompletedCondition); got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
			} else if client.IgnoreNotFound(err) != nil || err == nil {
				t.Errorf("want the EtcdBackup to be gone, got %v", err)
			}
		})
	}
}
