package backupstore

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/content"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

const uid = "11111111-2222-3333-4444-555555555555"

// archive puts an archive of a cluster into the store, with a description that a test may change.
func (w *world) archive(t *testing.T, cluster, name, uid string, change func(*fleetv1.EtcdBackup)) (key string) {
	t.Helper()
	namespace := meta("", "").Namespace
	key = namespace + "/" + cluster + "/" + name + "-" + uid + ".age"
	b := &fleetv1.EtcdBackup{}
	b.Namespace, b.Name, b.Spec.ClusterName = namespace, name, cluster
	b.Labels = map[string]string{fleetv1.PolicyLabel: "nightly"}
	b.Spec.Encryption.Recipients = []string{"age1xyz"}
	b.Spec.Encryption.IdentitySecretRef = &fleetv1.LocalReference{Name: "key"}
	b.Status.Archive = &fleetv1.ArchiveStatus{Key: key, SizeBytes: 1, SHA256: strings.Repeat("ab", 32)}
	b.Status.Etcd = &fleetv1.SnapshotStatus{Member: "m-1", SizeBytes: 1}
	if change != nil {
		change(b)
	}
	raw, err := json.Marshal(b)
	testenv.Must(t, err)
	testenv.Must(t, w.opened(t).Put(t.Context(), key, strings.NewReader("x")))
	testenv.Must(t, w.opened(t).Put(t.Context(), key+content.DescriptionSuffix, bytes.NewReader(raw)))
	return key
}

func (w *world) ask(t *testing.T, value string) {
	t.Helper()
	of := w.store(t)
	of.Annotations = map[string]string{fleetv1.ImportAnnotation: value}
	testenv.Must(t, w.Update(t.Context(), of))
	w.reconcile(t)
}

// TestImport: archives get EtcdBackups that no policy owns and that keep them; asked twice, none twice.
func TestImport(t *testing.T) {
	w := newWorld(t)
	first := w.archive(t, "c", "c-1", uid, nil)
	w.archive(t, "other", "o-1", uid, nil)
	testenv.Must(t, w.opened(t).Put(t.Context(), "elsewhere/c/c-9-"+uid+".age.json", strings.NewReader("{}")))
	testenv.Must(t, w.opened(t).Put(t.Context(), meta("", "").Namespace+"/c/part.age", strings.NewReader("x")))
	w.ask(t, "c")
	if got, want := w.state(t, fleetv1.StoreImportedCondition), "True Imported 1 EtcdBackups were created, 0 existed"; got != want {
		t.Errorf("condition: %s", got)
	}
	all := w.backups(t)
	b, found := all["c-1"]
	if !found || len(all) != 1 {
		t.Fatalf("EtcdBackups: %v", all)
	}
	if b.Annotations[fleetv1.ArchiveAnnotation] != first || b.Labels[fleetv1.PolicyLabel] != "" ||
		b.Spec.DeletionPolicy != fleetv1.DeletionPolicyRetain || b.Spec.StoreRef.Name != "disk" ||
		b.Spec.Encryption.IdentitySecretRef.Name != "key" || len(b.Finalizers) != 1 {
		t.Errorf("EtcdBackup: %+v", b)
	}
	w.Writes = nil
	w.reconcile(t)
	if len(w.Writes) != 0 {
		t.Errorf("writes after the import: %v", w.Writes)
	}
	w.ask(t, "*/2")
	if got, want := w.state(t, fleetv1.StoreImportedCondition), "True Imported 1 EtcdBackups were created, 1 existed"; got != want {
		t.Errorf("condition: %s", got)
	}
}

// TestImportOfSameName: another archive of the same name gets a name that follows from it, every time.
func TestImportOfSameName(t *testing.T) {
	w := newWorld(t)
	w.archive(t, "c", "c-1", uid, nil)
	w.archive(t, "c", "c-1", strings.Replace(uid, "1", "9", 1), nil)
	w.ask(t, "c")
	if all := w.backups(t); len(all) != 2 {
		t.Errorf("EtcdBackups: %v", all)
	}
	w.ask(t, "c/2")
	if all := w.backups(t); len(all) != 2 {
		t.Errorf("EtcdBackups after another import: %v", all)
	}
}

// TestImportOfHostileStore: what others have written there is not believed.
func TestImportOfHostileStore(t *testing.T) {
	for reason, change := range map[string]func(*fleetv1.EtcdBackup){
		"of another cluster":  func(b *fleetv1.EtcdBackup) { b.Spec.ClusterName = "other" },
		"of another archive":  func(b *fleetv1.EtcdBackup) { b.Status.Archive.Key = "ns/c/c-2-" + uid + ".age" },
		"without a checksum":  func(b *fleetv1.EtcdBackup) { b.Status.Archive.SHA256 = "" },
		"without an archive":  func(b *fleetv1.EtcdBackup) { b.Status.Archive = nil },
		"without a snapshot":  func(b *fleetv1.EtcdBackup) { b.Status.Etcd = nil },
		"with terminal codes": func(b *fleetv1.EtcdBackup) { b.Status.Etcd.Member = "\x1b[2J" },
		"too large":           func(b *fleetv1.EtcdBackup) { b.Status.KubernetesVersion = strings.Repeat("v", maxDescription) },
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			w.archive(t, "c", "c-1", uid, change)
			w.ask(t, "c")
			if all := w.backups(t); len(all) != 0 {
				t.Errorf("EtcdBackups: %v", all)
			}
			if got := w.state(t, fleetv1.StoreImportedCondition); !strings.HasPrefix(got,
				"True Imported 0 EtcdBackups were created, 0 existed, 1 descriptions of archives are unusable: ") {
				t.Errorf("condition: %s", got)
			}
		})
	}
	w := newWorld(t)
	w.ask(t, "../c")
	if got := w.state(t, fleetv1.StoreImportedCondition); !strings.HasPrefix(got, "False Invalid ") {
		t.Errorf("condition: %s", got)
	}
}
