package e2e

import (
	"fmt"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/journey"
)

// bucket returns the URL of an S3 service with the bucket "backups", at an address that this process and all containers reach.
func bucket(t *testing.T) string {
	t.Helper()
	gateway := must(t, "network", "inspect", "bridge", "--format", "{{(index .IPAM.Config 0).Gateway}}")[0]
	backend := s3mem.New()
	testenv.Must(t, backend.CreateBucket("backups"))
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(gateway, "0"))
	testenv.Must(t, err)
	service := httptest.NewUnstartedServer(gofakes3.New(backend).Server())
	testenv.Must(t, service.Listener.Close())
	service.Listener = listener
	service.Start()
	t.Cleanup(service.Close)
	return "http://" + listener.Addr().String()
}

// fleet installs the fleet provider, and creates a store and a key.
func fleet(t *testing.T, w *journey.World) client.Client {
	t.Helper()
	if r := w.Tools.Clusterctl(t.Context(), "", "init", "--kubeconfig", w.Kubeconfig, "--addon", "fleet", "--wait-providers"); r.Failed {
		t.Fatal(r)
	}
	s := runtime.NewScheme()
	testenv.Must(t, corev1.AddToScheme(s), fleetv1.AddToScheme(s))
	api, err := client.New(w.Config, client.Options{Scheme: s})
	testenv.Must(t, err)
	key, err := age.GenerateX25519Identity()
	testenv.Must(t, err)
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: w.Namespace, Name: name} }
	for _, o := range []client.Object{
		&corev1.Secret{ObjectMeta: meta("backup-key"), StringData: map[string]string{fleetv1.IdentityKey: key.String()}},
		&corev1.Secret{ObjectMeta: meta("s3"), StringData: map[string]string{fleetv1.AccessKeyIDKey: "id", fleetv1.SecretAccessKeyKey: "secret"}},
		&fleetv1.BackupStore{ObjectMeta: meta("bucket"), Spec: fleetv1.BackupStoreSpec{S3: &fleetv1.S3Store{
			Endpoint: bucket(t), Bucket: "backups", ForcePathStyle: ptr.To(true), CredentialsRef: fleetv1.LocalReference{Name: "s3"},
		}}},
	} {
		testenv.Must(t, api.Create(t.Context(), o))
	}
	return api
}

// TestRestore kills the containers of all three control plane machines, and restores a backup with kubeadm and etcd: what was written before
// is there, what was written since is not, and the workers are the same.
func TestRestore(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	w := shared.World(t)
	w.Patient()
	api := fleet(t, w)
	ctl := func(args ...string) journey.Result {
		r := w.Tools.Clusterctl(t.Context(), "", append(args, "--kubeconfig", w.Kubeconfig, "--namespace", w.Namespace)...)
		if r.Failed {
			t.Fatal(r)
		}
		return r
	}
	var c *journey.Subject
	stage(t, "3 control plane machines and 2 workers", func() {
		c = subject(t, w, withoutClass("plain"))
		applyFile(t, w, "cluster.yaml")
		network(t, c)
		c.Eventually("the Cluster becomes ready", journey.Ready, journey.ControlPlanes(3), journey.Workers(2), journey.Version(newer), c.WorkloadMatches)
	})
	kubectl(t, c, "create", "configmap", "before")
	stage(t, "a backup", func() { ctl("backup", c.Name, "--store", "bucket", "--identity-secret", "backup-key") })
	kubectl(t, c, "create", "configmap", "after")
	list := &fleetv1.EtcdBackupList{}
	testenv.Must(t, api.List(t.Context(), list, client.InNamespace(w.Namespace)))
	before := c.Snapshot()
	for _, m := range before.ControlPlane() {
		must(t, "kill", containerOf(m))
	}
	nodes := func() string {
		names := strings.Fields(kubectl(t, c, "get", "nodes", "--selector", "!node-role.kubernetes.io/control-plane",
			"--output", "jsonpath={range .items[*]}{.metadata.name}={.metadata.uid} {end}"))
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	began := time.Now()
	stage(t, "the restore", func() {
		t.Log(ctl("restore", c.Name, "--from", list.Items[0].Name, "--yes").Err)
	})
	restored := nodes()
	stage(t, "the other control plane machines", func() {
		c.Eventually("the Cluster becomes ready again", journey.Ready, journey.ControlPlanes(3), journey.Workers(2),
			journey.NewMachines((*journey.Snapshot).ControlPlane, before), journey.SameMachines((*journey.Snapshot).Workers, before), c.WorkloadMatches)
	})
	t.Logf("ready %.0f s after the machines were killed", time.Since(began).Seconds())
	if got := nodes(); got != restored {
		t.Errorf("the Nodes of workers were %s, are %s", restored, got)
	}
	kubectl(t, c, "get", "configmap", "before")
	if left := kubectl(t, c, "get", "configmaps", "--output", "name"); strings.Contains(left, "/after") {
		t.Errorf("what was written after the backup exists:\n%s", left)
	}
	stage(t, "a backup of the restored control plane", func() { ctl("backup", c.Name, "--store", "bucket", "--identity-secret", "backup-key") })
	after := c.Snapshot()
	if err := journey.SameMachines((*journey.Snapshot).Workers, before)(after); err != nil {
		t.Error(fmt.Errorf("workers were replaced: %w", err))
	}
	for _, o := range []client.Object{&fleetv1.ControlPlaneRestore{}, &fleetv1.EtcdBackup{}} {
		testenv.Must(t, api.DeleteAllOf(t.Context(), o, client.InNamespace(w.Namespace)))
	}
	gone(t, c)
}
