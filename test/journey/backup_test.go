package journey

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/backup/archive"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// fleetInstalled guards the installation of the fleet provider, which the tests of this file share.
var fleetInstalled sync.Once // TestMain cannot pass it to the tests otherwise.

// vault is a namespace of a management cluster with the fleet provider, a bucket, and a key for archives.
type vault struct {
	*World
	api    client.WithWatch
	bucket *s3mem.Backend
	key    *age.X25519Identity
}

// newVault returns a vault with the BackupStore bucket and the Secret backup-key.
func newVault(t *testing.T) *vault {
	t.Helper()
	w := shared.World(t)
	fleetInstalled.Do(func() {
		if r := w.Tools.Clusterctl(t.Context(), "", "init", "--kubeconfig", w.Kubeconfig, "--addon", "fleet", "--wait-providers"); r.Failed {
			t.Error(r)
		}
	})
	return newVaultIn(t, w)
}

// newVaultIn returns a vault in a World whose management cluster has the fleet provider.
func newVaultIn(t *testing.T, w *World) *vault {
	t.Helper()
	v := &vault{World: w, bucket: s3mem.New()}
	s := runtime.NewScheme()
	testenv.Must(t, corev1.AddToScheme(s), fleetv1.AddToScheme(s), v.bucket.CreateBucket("backups"))
	var err error
	v.api, err = client.NewWithWatch(v.Config, client.Options{Scheme: s})
	testenv.Must(t, err)
	v.key, err = age.GenerateX25519Identity()
	testenv.Must(t, err)
	service := httptest.NewServer(gofakes3.New(v.bucket).Server())
	t.Cleanup(service.Close)
	v.create(&corev1.Secret{ObjectMeta: v.movable("backup-key"), StringData: map[string]string{fleetv1.IdentityKey: v.key.String()}})
	v.create(&corev1.Secret{ObjectMeta: v.movable("s3"), StringData: map[string]string{
		fleetv1.AccessKeyIDKey: "id", fleetv1.SecretAccessKeyKey: "secret",
	}})
	v.create(&fleetv1.BackupStore{ObjectMeta: v.meta("bucket"), Spec: fleetv1.BackupStoreSpec{S3: &fleetv1.S3Store{
		Endpoint: service.URL, Bucket: "backups", Prefix: "fleet", ForcePathStyle: ptr.To(true),
		CredentialsRef: fleetv1.LocalReference{Name: "s3"},
	}}})
	return v
}

func (v *vault) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: v.Namespace, Name: name}
}

// movable is meta for Secrets that clusterctl move takes along.
func (v *vault) movable(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: v.Namespace, Name: name, Labels: map[string]string{"clusterctl.cluster.x-k8s.io/move": ""}}
}

func (v *vault) create(obj client.Object) {
	v.t.Helper()
	testenv.Must(v.t, v.api.Create(v.t.Context(), obj))
}

// clusterctl runs clusterctl in the namespace.
func (v *vault) clusterctl(args ...string) Result {
	return v.Tools.Clusterctl(v.t.Context(), "", append(args, "--kubeconfig", v.Kubeconfig, "--namespace", v.Namespace)...)
}

// settled waits until a condition of an object is as wanted: "False Invalid" with a part of the message.
func (v *vault) settled(obj interface {
	client.Object
	report.Getter
}, t, want, message string) {
	v.t.Helper()
	testenv.Eventually(v.t, fmt.Sprintf("%s of %s is %s", t, obj.GetName(), want), func() error {
		if err := v.api.Get(v.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		c := report.Get(obj, t)
		if c == nil || string(c.Status)+" "+c.Reason != want || !strings.Contains(c.Message, message) {
			return fmt.Errorf("it is %+v", c)
		}
		return nil
	})
}

// keys are the keys in the bucket.
func (v *vault) keys() []string {
	v.t.Helper()
	list, err := v.bucket.ListBucket("backups", nil, gofakes3.ListBucketPage{})
	testenv.Must(v.t, err)
	var all []string
	for _, o := range list.Contents {
		all = append(all, o.Key)
	}
	return all
}

// content returns the entries of an archive in the bucket; of the snapshot, only its size.
func (v *vault) content(key string) map[string]string {
	v.t.Helper()
	object, err := v.bucket.GetObject("backups", "fleet/"+key, nil)
	testenv.Must(v.t, err)
	raw, err := io.ReadAll(object.Contents)
	testenv.Must(v.t, err)
	if bytes.Contains(raw, []byte("PRIVATE KEY")) {
		v.t.Error("the archive is not encrypted")
	}
	r, err := archive.NewReader(bytes.NewReader(raw), v.key)
	testenv.Must(v.t, err)
	all := map[string]string{}
	for {
		name, size, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		testenv.Must(v.t, err)
		all[name] = fmt.Sprint(size)
		if name != "etcd.db" {
			text, err := r.ReadSmall()
			testenv.Must(v.t, err)
			all[name] = string(text)
		}
	}
}

// TestBackup backs up a Cluster with three control planes to a bucket, by the settings of its policy, and deletes the backup.
func TestBackup(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	c := v.Plain(Plain{ControlPlanes: 3, Workers: 1}.String())
	if r := v.clusterctl("backup", c.Name); !r.Failed || !strings.Contains(r.Err, "no EtcdBackupPolicy in namespace "+v.Namespace) {
		t.Errorf("a backup without a policy or a store: %s", r)
	}
	v.create(&fleetv1.EtcdBackupPolicy{ObjectMeta: v.meta("yearly"), Spec: fleetv1.EtcdBackupPolicySpec{
		Schedule: "0 0 1 1 *", BackupSettings: fleetv1.BackupSettings{
			StoreRef:   fleetv1.LocalReference{Name: "bucket"},
			Encryption: fleetv1.Encryption{IdentitySecretRef: &fleetv1.LocalReference{Name: "backup-key"}},
		},
	}})
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(3), Workers(1))
	r := v.clusterctl("backup", c.Name)
	if r.Failed || !strings.Contains(r.Err, "verified by Restored") {
		t.Fatal(r)
	}
	list := &fleetv1.EtcdBackupList{}
	testenv.Must(t, v.api.List(t.Context(), list, client.InNamespace(v.Namespace)))
	if len(list.Items) != 1 {
		t.Fatalf("there are %d backups, want 1", len(list.Items))
	}
	b := &list.Items[0]
	key := b.Status.Archive.Key
	if diff := cmp.Diff([]string{"fleet/" + key, "fleet/" + key + ".json"}, v.keys()); diff != "" {
		t.Errorf("keys in the bucket, -want +got:\n%s", diff)
	}
	content := v.content(key)
	secret := &corev1.Secret{}
	testenv.Must(t, v.api.Get(t.Context(), client.ObjectKey{Namespace: v.Namespace, Name: pki.SecretName(c.Name, pki.ClusterCA)}, secret))
	for name, want := range map[string]string{
		"metadata.json": fmt.Sprintf("%q: %q", "cluster", c.Name), "objects.yaml": "kind: KubeadmControlPlane",
		"secrets.yaml": "name: " + secret.Name, "etcd.db": fmt.Sprint(b.Status.Etcd.SizeBytes),
	} {
		if !strings.Contains(content[name], want) {
			t.Errorf("%s of the archive has no %q:\n%.300s", name, want, content[name])
		}
	}
	if got := b.Status.Verified; got.Keys < 20 || b.Status.Etcd.Revision == 0 {
		t.Errorf("the restored etcd served %d keys at revision %d", got.Keys, b.Status.Etcd.Revision)
	}
	if r := v.clusterctl("get", "backups", c.Name); r.Failed || !strings.Contains(r.Out, "Restored") {
		t.Error(r)
	}
	// The EtcdBackup is lost, and found again from what is beside the archive. It is the owner of the archive once it is told so.
	b.Spec.DeletionPolicy = fleetv1.DeletionPolicyRetain
	testenv.Must(t, v.api.Update(t.Context(), b), v.api.Delete(t.Context(), b))
	testenv.Eventually(t, "the EtcdBackup is gone", func() error {
		err := v.api.Get(t.Context(), client.ObjectKeyFromObject(b), &fleetv1.EtcdBackup{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it still exists: %w", err)
	})
	r = v.clusterctl("backup", c.Name, "--import", "--store", "bucket")
	if r.Failed || !strings.Contains(r.Err, "1 EtcdBackups were created, 0 existed") {
		t.Fatal(r)
	}
	found := &fleetv1.EtcdBackup{ObjectMeta: v.meta(b.Name)}
	v.settled(found, fleetv1.BackupVerifiedCondition, "True Verified", "")
	if found.Status.Archive.Key != key || found.Status.Etcd.Revision != b.Status.Etcd.Revision {
		t.Errorf("found again: %+v, want archive %s", found.Status, key)
	}
	found.Spec.DeletionPolicy = fleetv1.DeletionPolicyDelete
	testenv.Must(t, v.api.Update(t.Context(), found), v.api.Delete(t.Context(), found))
	testenv.Eventually(t, "the archive is deleted with its EtcdBackup", func() error {
		if left := v.keys(); len(left) > 0 {
			return fmt.Errorf("the bucket has %v", left)
		}
		return nil
	})
}

// TestBackupPolicy lets a policy with the shortest interval make three backups of a Cluster, of which it keeps one.
func TestBackupPolicy(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	v := newVault(t)
	c := v.Plain(Plain{ControlPlanes: 1, Workers: 1}.String())
	c.Eventually("the Cluster becomes ready", Ready)
	policy := &fleetv1.EtcdBackupPolicy{ObjectMeta: v.meta("often"), Spec: fleetv1.EtcdBackupPolicySpec{
		IntervalSeconds: ptr.To[int32](60), Retention: fleetv1.Retention{Count: ptr.To[int32](1)}, BackupSettings: fleetv1.BackupSettings{
			StoreRef:   fleetv1.LocalReference{Name: "bucket"},
			Encryption: fleetv1.Encryption{IdentitySecretRef: &fleetv1.LocalReference{Name: "backup-key"}},
		},
	}}
	v.create(policy)
	seen := map[string]bool{}
	testenv.Eventually(t, "three backups are made, and one is kept", func() error {
		list := &fleetv1.EtcdBackupList{}
		if err := v.api.List(t.Context(), list, client.InNamespace(v.Namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if b := &list.Items[i]; b.Status.Phase == fleetv1.BackupPhaseCompleted {
				seen[b.Name] = true
			}
		}
		if len(seen) < 3 || len(list.Items) != 1 || len(v.keys()) != 2 {
			return fmt.Errorf("%d were completed, %d exist, with keys %v", len(seen), len(list.Items), v.keys())
		}
		return nil
	})
	v.settled(policy, fleetv1.PolicyHealthyCondition, "True Healthy", "")
}

// TestBackupMistakes: what users and stores do wrong is a condition that says what to do.
func TestBackupMistakes(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	v.create(&fleetv1.BackupStore{ObjectMeta: v.meta("elsewhere"), Spec: fleetv1.BackupStoreSpec{S3: &fleetv1.S3Store{
		Endpoint: "http://127.0.0.1:1", Bucket: "backups", ForcePathStyle: ptr.To(true), CredentialsRef: fleetv1.LocalReference{Name: "s3"},
	}}})
	v.create(&fleetv1.BackupStore{ObjectMeta: v.meta("keyless"), Spec: fleetv1.BackupStoreSpec{S3: &fleetv1.S3Store{
		Endpoint: "https://s3.example.com", Bucket: "backups", CredentialsRef: fleetv1.LocalReference{Name: "absent"},
	}}})
	const ready = fleetv1.StoreReadyCondition
	v.settled(&fleetv1.BackupStore{ObjectMeta: v.meta("bucket")}, ready, "True Ready", "")
	v.settled(&fleetv1.BackupStore{ObjectMeta: v.meta("keyless")}, ready, "False Invalid", "Secret absent (spec.s3.credentialsRef) does not exist")
	v.settled(&fleetv1.BackupStore{ObjectMeta: v.meta("elsewhere")}, ready, "False Unreachable", "connection refused")

	backup := func(name string, spec fleetv1.EtcdBackupSpec) *fleetv1.EtcdBackup {
		b := &fleetv1.EtcdBackup{ObjectMeta: v.meta(name), Spec: spec}
		v.create(b)
		return b
	}
	settings := func(store, key string) fleetv1.BackupSettings {
		return fleetv1.BackupSettings{StoreRef: fleetv1.LocalReference{Name: store}, Encryption: fleetv1.Encryption{
			IdentitySecretRef: &fleetv1.LocalReference{Name: key},
		}}
	}
	const completed = fleetv1.BackupCompletedCondition
	b := backup("unknown-cluster", fleetv1.EtcdBackupSpec{ClusterName: "absent", BackupSettings: settings("bucket", "backup-key")})
	v.settled(b, completed, "False Failed", "Cluster absent does not exist")
	c := v.Plain(Plain{ControlPlanes: 1, Workers: 1}.String())
	c.Eventually("the Cluster becomes ready", Ready)
	for _, wrong := range []struct{ name, store, key, want string }{
		{"no-store", "absent", "backup-key", "BackupStore absent does not exist"},
		{"no-key", "bucket", "absent", "Secret absent (identitySecretRef) does not exist: make a key with \"age-keygen\""},
		{"store-down", "elsewhere", "backup-key", "the store is unreachable"},
	} {
		b := backup(wrong.name, fleetv1.EtcdBackupSpec{ClusterName: c.Name, BackupSettings: settings(wrong.store, wrong.key)})
		v.settled(b, completed, "False Pending", wrong.want)
		if wrong.name == "no-store" {
			store := &fleetv1.BackupStore{}
			testenv.Must(t, v.api.Get(t.Context(), client.ObjectKey{Namespace: v.Namespace, Name: "bucket"}, store))
			v.create(&fleetv1.BackupStore{ObjectMeta: v.meta("absent"), Spec: store.Spec})
			v.settled(b, completed, "True Completed", "")
		}
	}
	if err := v.api.Create(t.Context(), &fleetv1.EtcdBackup{ObjectMeta: v.meta("plain"), Spec: fleetv1.EtcdBackupSpec{
		ClusterName: c.Name, BackupSettings: fleetv1.BackupSettings{StoreRef: fleetv1.LocalReference{Name: "bucket"}},
	}}); err == nil || !strings.Contains(err.Error(), "encryption") {
		t.Errorf("a backup without encryption is admitted: %v", err)
	}
}
