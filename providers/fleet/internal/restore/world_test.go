package restore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/backup/archive"
	"sigs.k8s.io/cluster-api/backup/etcdsnapshot"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/backupstore"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/content"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
	"sigs.k8s.io/cluster-api/providers/internal/etcd"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// snapshot is a snapshot of a real etcd, with a Service of type LoadBalancer, another one that was deleted, and a PersistentVolume.
var snapshot = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "etcd")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	config := embed.NewConfig()
	config.Dir, config.Name = filepath.Join(dir, "data"), "m"
	config.ListenPeerUrls, config.ListenClientUrls = nil, nil
	nowhere := []url.URL{{Scheme: "http", Host: "localhost:0"}}
	config.AdvertisePeerUrls, config.AdvertiseClientUrls = nowhere, nowhere
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.UnsafeNoFsync = true
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	server, err := embed.StartEtcd(config)
	if err != nil {
		return nil, err
	}
	defer server.Close()
	<-server.Server.ReadyNotify()
	service := `{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"},"spec":{"type":"LoadBalancer"}}`
	for _, kv := range [][2]string{
		{"services/specs/default/balanced", service}, {"services/specs/default/deleted", service},
		{"services/specs/default/inside", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"},"spec":{"type":"ClusterIP"}}`},
		{"persistentvolumes/p", `{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"p"}}`},
	} {
		put := &etcdserverpb.PutRequest{Key: []byte("/registry/" + kv[0]), Value: []byte(kv[1])}
		if _, err := server.Server.Put(context.Background(), put); err != nil {
			return nil, err
		}
	}
	deleted := &etcdserverpb.DeleteRangeRequest{Key: []byte("/registry/services/specs/default/deleted")}
	if _, err := server.Server.DeleteRange(context.Background(), deleted); err != nil {
		return nil, err
	}
	server.Server.KV().Commit()
	var all bytes.Buffer
	taken := server.Server.Backend().Snapshot()
	if _, err := taken.WriteTo(&all); err != nil {
		return nil, errors.Join(err, taken.Close())
	}
	if err := taken.Close(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(all.Bytes())
	return append(all.Bytes(), sum[:]...), nil
})

// revision is that of the snapshot: five changes after the first one.
const revision = 6

// world has a Cluster with three control plane machines and two workers, an EtcdBackup in a store, and what others than the restore do: the
// controllers of the control plane and of Machines.
type world struct {
	*fakeapi.Server
	workload *fakeapi.Workload
	dir      string
	key      *age.X25519Identity
	runner   *step.Runner[*fleetv1.ControlPlaneRestore]
	fake     fakePlane
	// deaf is set if the controller of the control plane does not know operations, stuck if Machines cannot be deleted.
	deaf, stuck bool
	// created counts the Machines that the control plane has created.
	created int
}

// fakePlane is the restored control plane.
type fakePlane struct {
	peer     string
	members  int
	revision int64
	down     error
	client   client.Client
}

// View implements ControlPlane.
func (p *fakePlane) View(context.Context, string) (etcd.View, error) {
	v := etcd.View{ID: 1, Revision: p.revision}
	for i := range p.members {
		v.Members = append(v.Members, etcd.Member{
			ID: uint64(i + 1), PeerURLs: []string{p.peer}, ClientURLs: []string{"https://127.0.0.1:2379", "https://10.0.0.9:2379"},
		})
	}
	return v, p.down
}

// SetPeerURL implements ControlPlane.
func (p *fakePlane) SetPeerURL(_ context.Context, _ string, _ uint64, url string) error {
	p.peer = url
	return nil
}

// Workload implements ControlPlane.
func (p *fakePlane) Workload() client.Client { return p.client }

// Close implements ControlPlane.
func (*fakePlane) Close() {}

func meta(kind, name string) metav1.ObjectMeta {
	return object.Builder{ClusterName: "c"}.Meta(kind, name)
}

// newRestore returns a ControlPlaneRestore that is confirmed.
func newRestore(change func(*fleetv1.ControlPlaneRestore)) *fleetv1.ControlPlaneRestore {
	r := &fleetv1.ControlPlaneRestore{ObjectMeta: meta(fleetv1.ControlPlaneRestoreKind, "r"), Spec: fleetv1.ControlPlaneRestoreSpec{
		ClusterName: "c", BackupName: "b", Confirm: fmt.Sprint("c@", revision),
	}}
	r.CreationTimestamp = metav1.NewTime(object.Now())
	if change != nil {
		change(r)
	}
	return r
}

// archiveKey is the key of the archive.
const archiveKey = "default/c/b.age"

func newWorld(t *testing.T, r *fleetv1.ControlPlaneRestore, more ...func(client.Object)) *world {
	t.Helper()
	key, err := age.GenerateX25519Identity()
	testenv.Must(t, err)
	build := object.Builder{ClusterName: "c"}
	cluster := build.Cluster(object.Initialized)
	cluster.Spec.ControlPlaneRef = *object.Reference(controlplanev1.GroupVersion.WithKind("KubeadmControlPlane"), "kcp")
	cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "vip.example.com", Port: 6443}
	kcp := &controlplanev1.KubeadmControlPlane{ObjectMeta: meta("KubeadmControlPlane", "kcp")}
	kcp.Spec.Replicas, kcp.Spec.Version = ptr.To[int32](3), "v1.36.3"
	b := &fleetv1.EtcdBackup{ObjectMeta: meta("EtcdBackup", "b"), Spec: fleetv1.EtcdBackupSpec{
		ClusterName: "c", BackupSettings: fleetv1.BackupSettings{
			StoreRef:   fleetv1.LocalReference{Name: "disk"},
			Encryption: fleetv1.Encryption{IdentitySecretRef: &fleetv1.LocalReference{Name: "key"}},
		},
	}, Status: fleetv1.EtcdBackupStatus{
		Phase: fleetv1.BackupPhaseCompleted, Archive: &fleetv1.ArchiveStatus{Key: archiveKey},
		Etcd: &fleetv1.SnapshotStatus{Revision: revision, Version: "3.6.4"}, KubernetesVersion: "v1.36.1",
	}}
	objects := []client.Object{
		cluster, kcp, b, r,
		&corev1.Secret{ObjectMeta: meta("Secret", "key"), Data: map[string][]byte{fleetv1.IdentityKey: []byte(key.String())}},
		&fleetv1.BackupStore{ObjectMeta: meta("BackupStore", "disk"), Spec: fleetv1.BackupStoreSpec{Directory: &fleetv1.DirectoryStore{Path: "d"}}},
	}
	nodes := []client.Object{object.Node("stranger")}
	for _, name := range []string{"cp-1", "cp-2", "cp-3", "w-1", "w-2"} {
		m := build.Machine(name, object.WithNode(name))
		m.Finalizers = []string{clusterv1.MachineFinalizer}
		node := object.Node(name)
		node.Annotations = map[string]string{clusterv1.MachineAnnotation: name, clusterv1.ClusterNameAnnotation: "c"}
		if strings.HasPrefix(name, "cp") {
			object.ControlPlane(m)
			m.Annotations = map[string]string{controlplanev1.PreTerminateHookCleanupAnnotation: ""}
			node.Labels = map[string]string{controlPlaneRole: ""}
		}
		objects = append(objects, m)
		if name != "w-2" { // It is newer than the backup.
			nodes = append(nodes, node)
		}
	}
	for _, purpose := range pki.OfControlPlane(false) {
		objects = append(objects, pki.NewSecret(client.ObjectKeyFromObject(cluster), purpose, map[string][]byte{"tls.crt": []byte("c"), "tls.key": []byte("k")}, nil))
	}
	for _, change := range more {
		for _, o := range objects {
			change(o)
		}
	}
	w := &world{
		Server: fakeapi.New(t, fakeapi.Options{Kinds: []func(*runtime.Scheme) error{fleetv1.AddToScheme, controlplanev1.AddToScheme}, Objects: objects}),
		dir:    t.TempDir(), key: key,
		fake: fakePlane{peer: placeholderPeer, members: 1, revision: revision + bump},
	}
	w.workload = w.NewWorkload(t, nodes...)
	w.write(t, archiveKey, func(*content.Metadata) {}, key.Recipient())
	w.restart(t)
	return w
}

// write stores an archive.
func (w *world) write(t *testing.T, key string, change func(*content.Metadata), to age.Recipient) {
	t.Helper()
	about := content.Metadata{
		FormatVersion: 1, Namespace: "default", Cluster: "c", ClusterUID: object.UID("Cluster", "c"), Time: metav1.NewTime(object.Now().Add(-time.Hour)),
		EtcdVersion: "3.6.4", KubernetesVersion: "v1.36.1",
	}
	change(&about)
	described, err := json.Marshal(about)
	testenv.Must(t, err)
	var secrets []byte
	for _, purpose := range pki.OfControlPlane(false) {
		secret := pki.NewSecret(types.NamespacedName{Namespace: about.Namespace, Name: about.Cluster}, purpose,
			map[string][]byte{"tls.crt": []byte("c"), "tls.key": []byte("k")}, nil)
		text, err := yaml.Marshal(secret)
		testenv.Must(t, err)
		secrets = append(append(secrets, "---\n"...), text...)
	}
	database, err := snapshot()
	testenv.Must(t, err)
	file := filepath.Join(w.dir, "d", key)
	testenv.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
	f, err := os.Create(file)
	testenv.Must(t, err)
	a, err := archive.NewWriter(f, to)
	testenv.Must(t, err)
	for _, e := range []struct {
		name string
		data []byte
	}{{content.MetadataEntry, described}, {content.SecretsEntry, secrets}, {content.SnapshotEntry, database}} {
		testenv.Must(t, a.Add(e.name, int64(len(e.data)), bytes.NewReader(e.data)))
	}
	testenv.Must(t, a.Close(), f.Close())
}

// restart starts another process.
func (w *world) restart(t *testing.T) {
	t.Helper()
	clients := w.ForController()
	c := New(clients, Options{
		Opener: backupstore.Opener{Stores: clients.Client, Secrets: clients.Live, DataDir: w.dir}, WorkDir: t.TempDir(),
		Connect: func(context.Context, types.NamespacedName) (ControlPlane, error) {
			w.fake.client = w.workload.ForController()
			return &w.fake, w.fake.down
		},
		Server: server{},
	})
	c.found = func(_ context.Context, _, dir string, _ etcdsnapshot.Options) error {
		return errors.Join(os.MkdirAll(filepath.Join(dir, "member", "snap"), 0o700),
			os.WriteFile(filepath.Join(dir, "member", "snap", "db"), []byte("database"), 0o600))
	}
	w.runner = c.declared().Runner(c.Clients)
}

// server is an HTTP server.
type server struct{}

// URL implements Server.
func (server) URL(*fleetv1.ControlPlaneRestore) string { return "http://192.0.2.1/data" }

// Serves implements Server.
func (server) Serves(url string) bool { return url == "http://192.0.2.1/data" }

var request = ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "r"}}

// reconcile reconciles once, and then lets the others act.
func (w *world) reconcile(t *testing.T) error {
	t.Helper()
	_, err := w.runner.Reconcile(t.Context(), request)
	w.others(t)
	w.Clock.Step(operation.Poll)
	return err
}

// finish reconciles until nothing is left to do, at most so often.
func (w *world) finish(t *testing.T) {
	t.Helper()
	for range 60 {
		testenv.Must(t, w.reconcile(t))
		if r := w.restore(t); r == nil || r.Ended() && len(r.Finalizers) == 0 {
			return
		}
	}
}

// others does what the controllers of the control plane and of Machines do.
func (w *world) others(t *testing.T) {
	t.Helper()
	kcp := &controlplanev1.KubeadmControlPlane{}
	if err := w.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "kcp"}, kcp); apierrors.IsNotFound(err) {
		return
	}
	op, err := fleetv1.OperationOf(kcp)
	testenv.Must(t, err)
	if !w.deaf {
		before := kcp.DeepCopy()
		delete(kcp.Annotations, fleetv1.OperationObservedAnnotation)
		if op != nil {
			kcp.Annotations[fleetv1.OperationObservedAnnotation] = op.Token()
		}
		testenv.Must(t, w.Patch(t.Context(), kcp, client.MergeFrom(before)))
	}
	planes := w.planes(t)
	for i := range planes {
		m := &planes[i]
		_, held := m.Annotations[controlplanev1.PreTerminateHookCleanupAnnotation]
		if !m.DeletionTimestamp.IsZero() && !held && !w.stuck {
			m.Finalizers = nil
			testenv.Must(t, w.Update(t.Context(), m))
		}
	}
	if len(planes) == 0 && op != nil && op.Mode == fleetv1.OperationModeRestore {
		secret := &corev1.Secret{}
		testenv.Must(t, w.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: op.DataSecret}, secret))
		w.created++
		m := object.Builder{ClusterName: "c"}.Machine(fmt.Sprint("new-", w.created), object.WithNode(fmt.Sprint("new-", w.created)))
		object.ControlPlane(m)
		node := object.Node(m.Name)
		node.Labels = map[string]string{controlPlaneRole: ""}
		testenv.Must(t, w.Create(t.Context(), m), w.workload.Client.Create(t.Context(), node))
	}
}

// planes are the control plane Machines.
func (w *world) planes(t *testing.T) []clusterv1.Machine {
	t.Helper()
	list := &clusterv1.MachineList{}
	testenv.Must(t, w.List(t.Context(), list, client.HasLabels{clusterv1.MachineControlPlaneLabel}))
	return list.Items
}

// restore returns the ControlPlaneRestore; nil if it is gone.
func (w *world) restore(t *testing.T) *fleetv1.ControlPlaneRestore {
	t.Helper()
	r := &fleetv1.ControlPlaneRestore{}
	err := w.Get(t.Context(), request.NamespacedName, r)
	if apierrors.IsNotFound(err) {
		return nil
	}
	testenv.Must(t, err)
	return r
}

// state returns the condition as "False Waiting message".
func (w *world) state(t *testing.T) string {
	t.Helper()
	c := report.Get(w.restore(t), fleetv1.OperationCompletedCondition)
	if c == nil {
		return "none"
	}
	return fmt.Sprint(c.Status, " ", c.Reason, " ", c.Message)
}

// nodeNames are the names of the Nodes.
func (w *world) nodeNames(t *testing.T) []string {
	t.Helper()
	list := &corev1.NodeList{}
	testenv.Must(t, w.workload.Client.List(t.Context(), list))
	var all []string
	for i := range list.Items {
		all = append(all, list.Items[i].Name)
	}
	slices.Sort(all)
	return all
}

// leftovers are what was stored for a Machine: the Secret, and files in the store.
func (w *world) leftovers(t *testing.T) []string {
	t.Helper()
	var all []string
	testenv.Must(t, filepath.WalkDir(w.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && strings.Contains(path, "/restore-") {
			all = append(all, path)
		}
		return err
	}))
	secrets := &corev1.SecretList{}
	testenv.Must(t, w.List(t.Context(), secrets))
	for i := range secrets.Items {
		if _, data := secrets.Items[i].Data[fleetv1.RestoreScriptKey]; data {
			all = append(all, secrets.Items[i].Name)
		}
	}
	return all
}

// held reports whether the control plane has an operation.
func (w *world) held(t *testing.T) bool {
	t.Helper()
	kcp := &controlplanev1.KubeadmControlPlane{}
	testenv.Must(t, w.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "kcp"}, kcp))
	op, err := fleetv1.OperationOf(kcp)
	testenv.Must(t, err)
	return op != nil
}
