package scenario

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"filippo.io/age"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/test/fault/history"
)

const (
	fleetAPI = "fleet.cluster.x-k8s.io/v1alpha1"
	// backupKey is the name of the Secret with the key of archives, and of the BackupStore.
	backupKey = "backup-key"
)

// backups returns the scenario of two backups of a Cluster, of which one is deleted.
func backups() []Scenario {
	s := deployed(1, 1)
	return []Scenario{{
		Name: "backups-1x1", Backups: true, Before: &s, Arrange: CreateBackupStore,
		Change: []Change{CreateBackups("kept", "gone"), ended("gone"), DeleteBackup("gone"), archivesOf("kept")},
		Done:   []Condition{Ready(s), verifiedBackups("kept")}, Discard: deleteBackedUp,
		Limits: Limits{MaxControlPlanes: 1, MaxWorkers: 1, MinControlPlanes: 1, MinWorkers: 1},
	}}
}

// CreateBackupStore creates a BackupStore in a directory of the namespace's own, and the key of archives.
func CreateBackupStore(ctx context.Context, t Target) error {
	key, err := age.GenerateX25519Identity()
	if err != nil {
		return err
	}
	secret := object("v1", "Secret", t.Namespace, backupKey)
	secret.Object["stringData"] = map[string]any{"identity": key.String()}
	store := object(fleetAPI, "BackupStore", t.Namespace, backupKey)
	store.Object["spec"] = map[string]any{"directory": map[string]any{"path": t.Namespace}}
	return errors.Join(ignoreExists(t.Client.Create(ctx, secret)), ignoreExists(t.Client.Create(ctx, store)))
}

// CreateBackups creates EtcdBackups of the Cluster.
func CreateBackups(names ...string) Change {
	return func(ctx context.Context, t Target) error {
		for _, name := range names {
			b := object(fleetAPI, "EtcdBackup", t.Namespace, name)
			b.Object["spec"] = map[string]any{
				"clusterName": ClusterName, "storeRef": map[string]any{"name": backupKey},
				"encryption": map[string]any{"identitySecretRef": map[string]any{"name": backupKey}},
			}
			if err := ignoreExists(t.Client.Create(ctx, b)); err != nil {
				return err
			}
		}
		return nil
	}
}

// DeleteBackup deletes an EtcdBackup.
func DeleteBackup(name string) Change {
	return func(ctx context.Context, t Target) error {
		return client.IgnoreNotFound(t.Client.Delete(ctx, object(fleetAPI, "EtcdBackup", t.Namespace, name)))
	}
}

// ended fails, and is retried, until a backup has completed.
func ended(name string) Change {
	return func(ctx context.Context, t Target) error {
		b := object(fleetAPI, "EtcdBackup", t.Namespace, name)
		if err := t.Client.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
			return err
		}
		if phase, _, _ := unstructured.NestedString(b.Object, "status", "phase"); phase != "Completed" {
			return fmt.Errorf("EtcdBackup %s is %q", name, phase)
		}
		return nil
	}
}

// archivesOf fails, and is retried, until the store has the archive of one backup with its description, and nothing else: no part of
// another one.
func archivesOf(name string) Change {
	return func(_ context.Context, t Target) error {
		var files []string
		dir := filepath.Join(t.Backups, t.Namespace)
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				files = append(files, filepath.Base(path))
			}
			return err
		})
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		// Parts that a killed manager has left are removed after a day; they have no name in the store.
		files = slices.DeleteFunc(files, func(f string) bool { return !strings.Contains(f, ".age") })
		slices.Sort(files)
		if len(files) != 2 || !strings.HasPrefix(files[0], name+"-") || files[1] != files[0]+".json" {
			return fmt.Errorf("the store has %v, want the archive of %s and its description", files, name)
		}
		return nil
	}
}

// verifiedBackups is true when exactly these backups exist, and each was verified by a restore.
func verifiedBackups(names ...string) Condition {
	return func(now history.State) error {
		for _, b := range now.Of("EtcdBackup") {
			method, _, _ := unstructured.NestedString(b.Object, "status", "verified", "method")
			if !slices.Contains(names, b.GetName()) || method != "Restored" || Status(b, "Verified") != "True" {
				return fmt.Errorf("EtcdBackup %s is verified by %q, want %v to be verified by a restore", b.GetName(), method, names)
			}
		}
		if n := len(now.Of("EtcdBackup")); n != len(names) {
			return fmt.Errorf("%d EtcdBackups exist, want %v", n, names)
		}
		return nil
	}
}

// deleteBackedUp deletes the Cluster, operations on it, its backups and their store, in an order that users must not have to know.
func deleteBackedUp(ctx context.Context, t Target) error {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(fleetAPI)
	list.SetKind("EtcdBackupList")
	if err := errors.Join(deleteOperated(ctx, t), t.Client.List(ctx, list, client.InNamespace(t.Namespace))); err != nil {
		return err
	}
	// The store first: it waits for them.
	if err := client.IgnoreNotFound(t.Client.Delete(ctx, object(fleetAPI, "BackupStore", t.Namespace, backupKey))); err != nil {
		return err
	}
	for i := range list.Items {
		if err := client.IgnoreNotFound(t.Client.Delete(ctx, &list.Items[i])); err != nil {
			return err
		}
	}
	return nil
}

// ofBackups reports whether an object is what backups need, which is deleted with the namespace.
func ofBackups(key history.Key) bool {
	return key.Name == backupKey && (key.Kind == "Secret" || key.Kind == "BackupStore")
}
