package journey

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestMoveKeepsBackups moves a Cluster with a backup to another management cluster: its EtcdBackup has the same archive there, and no other
// is made. There, the EtcdBackup is deleted with the archive.
func TestMoveKeepsBackups(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	var sides [2]*Management
	for i := range sides {
		sides[i] = newSide(t)
		r := sides[i].Tools.Clusterctl(t.Context(), "", "init", "--kubeconfig", sides[i].Kubeconfig, "--addon", "fleet", "--wait-providers")
		if r.Failed {
			t.Fatal(r)
		}
	}
	v := newVaultIn(t, sides[0].World(t))
	c := v.Plain(Plain{ControlPlanes: 1, Workers: 1}.String())
	c.Eventually("the Cluster becomes ready", Ready)
	if r := v.clusterctl("backup", c.Name, "--store", "bucket", "--identity-secret", "backup-key"); r.Failed {
		t.Fatal(r)
	}
	made := v.only()
	target := v.at(v.World.Move(sides[1]))
	moved := c.Moved(target.World)
	moved.Eventually("the Cluster is ready after the move", Ready)
	testenv.Eventually(t, "the moved EtcdBackup has its archive", func() error {
		b := target.only()
		if b.Status.Archive == nil || b.Status.Verified == nil {
			return fmt.Errorf("status %+v", b.Status)
		}
		if b.Status.Archive.Key != made.Status.Archive.Key || b.Status.Etcd.Revision != made.Status.Etcd.Revision {
			t.Errorf("archive %+v, want %+v", b.Status.Archive, made.Status.Archive)
		}
		return nil
	})
	if keys := v.keys(); len(keys) != 2 {
		t.Errorf("keys in the bucket: %v", keys)
	}
	testenv.Must(t, target.api.Delete(t.Context(), target.only()))
	testenv.Eventually(t, "the archive is deleted with its EtcdBackup", func() error {
		if left := v.keys(); len(left) > 0 {
			return fmt.Errorf("the bucket has %v", left)
		}
		return nil
	})
}

// only returns the EtcdBackup of the namespace.
func (v *vault) only() *fleetv1.EtcdBackup {
	v.t.Helper()
	list := &fleetv1.EtcdBackupList{}
	testenv.Must(v.t, v.api.List(v.t.Context(), list, client.InNamespace(v.Namespace)))
	if len(list.Items) != 1 {
		v.t.Fatalf("there are %d backups, want 1", len(list.Items))
	}
	return &list.Items[0]
}

// at returns the vault as it is in another World.
func (v *vault) at(w *World) *vault {
	v.t.Helper()
	api, err := client.NewWithWatch(w.Config, client.Options{Scheme: v.api.Scheme()})
	testenv.Must(v.t, err)
	return &vault{World: w, api: api, bucket: v.bucket, key: v.key}
}
