package backupstore

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// stores returns an EtcdBackup whose archive is in the store.
func stores(change func(*fleetv1.EtcdBackup)) *fleetv1.EtcdBackup {
	b := &fleetv1.EtcdBackup{ObjectMeta: meta("EtcdBackup", "b")}
	b.Finalizers = []string{fleetv1.EtcdBackupFinalizer}
	b.Spec.ClusterName, b.Spec.StoreRef.Name = "c", "disk"
	b.Status.Archive = &fleetv1.ArchiveStatus{Key: "ns/c/b.age"}
	if change != nil {
		change(b)
	}
	return b
}

func TestRelease(t *testing.T) {
	cases := []struct {
		reason string
		backup *fleetv1.EtcdBackup
		moved  bool
		held   bool
	}{
		{reason: "the archive is deleted with its EtcdBackup, which needs the store", backup: stores(nil), held: true},
		{reason: "the archive is kept", backup: stores(func(b *fleetv1.EtcdBackup) { b.Spec.DeletionPolicy = fleetv1.DeletionPolicyRetain })},
		{reason: "there is no archive", backup: stores(func(b *fleetv1.EtcdBackup) { b.Status.Archive = nil })},
		{reason: "it is in another store", backup: stores(func(b *fleetv1.EtcdBackup) { b.Spec.StoreRef.Name = "other" })},
		{reason: "its archive has been deleted", backup: stores(func(b *fleetv1.EtcdBackup) { b.Finalizers = []string{"other/one"} })},
		{reason: "it was moved to another management cluster", backup: stores(nil), moved: true},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, tc.backup)
			of := w.store(t)
			if tc.moved {
				of.Annotations = map[string]string{deleteForMove: ""}
				testenv.Must(t, w.Update(t.Context(), of))
			}
			testenv.Must(t, w.Delete(t.Context(), of))
			w.reconcile(t)
			err := w.Get(t.Context(), client.ObjectKeyFromObject(of), of)
			if held := err == nil; held != tc.held {
				t.Fatalf("held: %v, error %v", held, err)
			}
			if !tc.held {
				return
			}
			if got, want := w.state(t, fleetv1.StoreReadyCondition), "False InUse its deletion waits for EtcdBackup b, "+
				"whose archives are deleted with them: delete them, or set their spec.deletionPolicy to Retain"; got != want {
				t.Errorf("condition: %s", got)
			}
			b := stores(nil)
			testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(b), b))
			b.Spec.DeletionPolicy = fleetv1.DeletionPolicyRetain
			testenv.Must(t, w.Update(t.Context(), b))
			w.reconcile(t)
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(of), of); !apierrors.IsNotFound(err) {
				t.Errorf("it still exists: %v", err)
			}
		})
	}
}
