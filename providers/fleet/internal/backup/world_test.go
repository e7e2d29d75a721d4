package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/backupstore"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/member"
	"sigs.k8s.io/cluster-api/providers/internal/etcd"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// fakeEtcd is the etcd of the Cluster, with one member.
type fakeEtcd struct {
	// refuses is the error of connections, cut the number of bytes after which snapshots end.
	refuses error
	cut     int
	// snapshots is how many have begun.
	snapshots int
	// gate, if not nil, is received from before each chunk after the first.
	gate chan struct{}
}

// database is the database: what an etcd would not open, but with a checksum.
func database() []byte { return bytes.Repeat([]byte("0123456789abcdef"), 8192) }

func (f *fakeEtcd) connect(context.Context, types.NamespacedName) (Etcd, error) {
	if f.refuses != nil {
		return nil, f.refuses
	}
	return f, nil
}

// Choose implements Etcd.
func (*fakeEtcd) Choose(context.Context) (member.Member, error) {
	return member.Member{Node: "m-1", View: etcd.View{ID: 1, ClusterID: 0xabc, Version: "3.6.8", Revision: 42}}, nil
}

// Snapshot implements Etcd.
func (f *fakeEtcd) Snapshot(context.Context, member.Member) (Stream, error) {
	f.snapshots++
	sum := sha256.Sum256(database())
	all := append(database(), sum[:]...)
	if f.cut > 0 {
		all = all[:f.cut]
	}
	return &stream{rest: all, size: len(database()), gate: f.gate}, nil
}

// Close implements Etcd.
func (*fakeEtcd) Close() {}

// stream sends chunks of 32 KiB.
type stream struct {
	rest       []byte
	sent, size int
	gate       chan struct{}
}

// Next implements Stream.
func (s *stream) Next() ([]byte, uint64, error) {
	if s.gate != nil && s.sent > 0 {
		<-s.gate
	}
	if len(s.rest) == 0 {
		return nil, 0, io.EOF
	}
	chunk := s.rest[:min(32<<10, len(s.rest))]
	s.rest = s.rest[len(chunk):]
	s.sent += len(chunk)
	return chunk, uint64(max(s.size-s.sent, 0)), nil
}

// Close implements Stream.
func (*stream) Close() {}

// world has a Cluster with its CAs, a BackupStore in a directory, a key, and an EtcdBackup.
type world struct {
	*fakeapi.Server
	etcd   *fakeEtcd
	dir    string
	key    *age.X25519Identity
	runner *step.Runner[*fleetv1.EtcdBackup]
	timers clock.Clock
}

func meta(kind, name string) metav1.ObjectMeta {
	return object.Builder{ClusterName: "c"}.Meta(kind, name)
}

// newBackup returns an EtcdBackup that is verified by its checksum.
func newBackup(change func(*fleetv1.EtcdBackup)) *fleetv1.EtcdBackup {
	b := &fleetv1.EtcdBackup{ObjectMeta: meta("EtcdBackup", "b"), Spec: fleetv1.EtcdBackupSpec{
		ClusterName: "c", BackupSettings: fleetv1.BackupSettings{
			StoreRef: fleetv1.LocalReference{Name: "disk"}, Verification: fleetv1.VerificationChecksum, TimeoutSeconds: ptr.To[int32](600),
			Encryption: fleetv1.Encryption{IdentitySecretRef: &fleetv1.LocalReference{Name: "key"}},
		},
	}}
	b.CreationTimestamp = metav1.NewTime(object.Now())
	b.Finalizers = []string{fleetv1.EtcdBackupFinalizer}
	if change != nil {
		change(b)
	}
	return b
}

func newWorld(t *testing.T, b *fleetv1.EtcdBackup) *world {
	t.Helper()
	key, err := age.GenerateX25519Identity()
	testenv.Must(t, err)
	cluster := object.Builder{ClusterName: "c"}.Cluster(object.Initialized)
	objects := []client.Object{
		cluster, b,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.Namespace}},
		&corev1.Secret{ObjectMeta: meta("Secret", "key"), Data: map[string][]byte{fleetv1.IdentityKey: []byte(key.String())}},
		&fleetv1.BackupStore{ObjectMeta: meta("BackupStore", "disk"), Spec: fleetv1.BackupStoreSpec{
			Directory: &fleetv1.DirectoryStore{Path: "nightly"},
		}},
	}
	for _, purpose := range pki.OfControlPlane(false) {
		objects = append(objects, pki.NewSecret(client.ObjectKeyFromObject(cluster), purpose, map[string][]byte{"tls.key": []byte("PRIVATE KEY")}, nil))
	}
	w := &world{
		Server: fakeapi.New(t, fakeapi.Options{Objects: objects, Kinds: []func(*runtime.Scheme) error{
			fleetv1.AddToScheme, controlplanev1.AddToScheme, bootstrapv1.AddToScheme,
		}}),
		etcd: &fakeEtcd{}, dir: t.TempDir(), key: key,
	}
	w.restart(t)
	return w
}

// restart starts another process.
func (w *world) restart(t *testing.T) {
	t.Helper()
	clients := w.ForController()
	c := New(clients, Options{
		Opener:  backupstore.Opener{Stores: clients.Client, Secrets: clients.Live, DataDir: w.dir},
		Connect: w.etcd.connect, BytesPerSecond: 1 << 30, WorkDir: t.TempDir(), Timers: w.timers,
	})
	w.runner = c.declared().Runner(c.Clients)
}

// reconcile returns when the next reconcile is due without an event.
func (w *world) reconcile(t *testing.T) time.Duration {
	t.Helper()
	result, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(newBackup(nil))})
	testenv.Must(t, err)
	return result.RequeueAfter
}

func (w *world) backup(t *testing.T) *fleetv1.EtcdBackup {
	t.Helper()
	b := newBackup(nil)
	testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(b), b))
	return b
}

// state returns a condition as "False Pending message".
func (w *world) state(t *testing.T, condition string) string {
	t.Helper()
	c := report.Get(w.backup(t), condition)
	if c == nil {
		return "none"
	}
	return fmt.Sprint(c.Status, " ", c.Reason, " ", c.Message)
}

// files are the files in the store.
func (w *world) files(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(w.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, relErr := filepath.Rel(w.dir, path)
			all = append(all, name)
			return relErr
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return all
}

func requestOf(obj client.Object) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj)}
}

func secretNamed(name string) *corev1.Secret { return &corev1.Secret{ObjectMeta: meta("Secret", name)} }

func namespaceNamed(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
