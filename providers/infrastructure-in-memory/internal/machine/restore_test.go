package machine

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/faults"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd/database"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd/database/databasetest"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// lostWorld is a cluster with a backup: control plane machine cp1 is gone, worker w1 is in the backup, and w2 joined later.
type lostWorld struct {
	*kubeadmWorld
	served   []byte // the file that machines download
	content  []byte // the backup
	sum      string
	url      string
	revision uint64
	objects  map[string]string
}

// bump is by how much the backup raises the revision.
const bump = 100000

func newLostWorld(t *testing.T) *lostWorld {
	t.Helper()
	w := &lostWorld{kubeadmWorld: newKubeadmWorld(t, pki.ECDSA)}
	w.disk = t.TempDir()
	w.restart(t)
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { _, _ = out.Write(w.served) }))
	t.Cleanup(server.Close)
	w.url = server.URL
	w.add(t, "cp1", true, w.initData())
	w.reconcile(t, "cp1")
	must(t, w.group(t).SetFaults(faults.Faults{})) // as the controller of clusters does
	w.token(t, as)
	w.join(t, "w1", false)
	w.put(t, "before")
	w.backUp(t)
	w.put(t, "later")
	w.join(t, "w2", false)
	must(t, w.Delete(t.Context(), w.read(t, "cp1")))
	w.reconcile(t, "cp1")
	return w
}

func (w *lostWorld) join(t *testing.T, name string, controlPlane bool) {
	t.Helper()
	w.add(t, name, controlPlane, w.joinData(goodToken, pki.PublicKeyHash(w.ca.Certificate), controlPlane))
	w.reconcile(t, name)
}

func (w *lostWorld) put(t *testing.T, name string) {
	t.Helper()
	_, err := store.Ensure(w.group(t), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
	must(t, err)
}

// backUp backs the cluster up as real backups do, with etcd's tool.
func (w *lostWorld) backUp(t *testing.T) {
	t.Helper()
	versions := w.group(t).Versions()
	f, err := database.Write(versions, database.Membership{
		Members: []database.Member{{ID: 1, Name: "cp1"}}, Term: 2, Index: versions.Revision, Version: "3.6.0", Versioned: true,
	})
	must(t, err)
	w.content, w.sum = databasetest.Encrypt(t, databasetest.Pack(t, databasetest.Restore(t, databasetest.Snapshot(t, f.Reader()), bump)))
	must(t, f.Close())
	w.served, w.revision, w.objects = w.content, versions.Revision, objects(w.group(t))
}

// objects returns all objects but Nodes, Pods, and what kubeadm init uploads again.
func objects(g *cloud.Group) map[string]string {
	all := map[string]string{}
	for _, v := range g.Versions().All {
		key := v.Object.Key
		if current, err := g.Get(key); err != nil || current != v.Object || key.Resource.Group == store.Simulation ||
			key.Resource == store.Nodes() || key.Resource == store.Pods() || key.Name == kubeadmConfigName || key.Name == clusterInfoName {
			continue
		}
		all[key.String()] = string(v.Object.Raw())
	}
	return all
}

// restoreData is bootstrap data of kubeadm init that restores the backup.
func (w *lostWorld) restoreData(sum string) string {
	return w.initData() + fmt.Sprintf("  - {path: /etc/cluster-api/restore.sh, content: 'exit 7'}\n"+
		"  - {path: /etc/cluster-api/restore.json, content: '{\"url\": %q, \"sha256\": %q, \"key\": %q, \"iv\": %q}'}\n", w.url, sum,
		databasetest.Key, databasetest.IV) + "runcmd:\n  - /bin/sh /etc/cluster-api/restore.sh\n" +
		"  - kubeadm init --config /run/kubeadm/kubeadm.yaml --ignore-preflight-errors=DirAvailable--var-lib-etcd\n"
}

// nodes returns the status of each Node's condition Ready.
func nodes(t *testing.T, g *cloud.Group) map[string]string {
	t.Helper()
	all := map[string]string{}
	list, _ := g.List(store.Nodes(), "", store.Selector{})
	for _, o := range list {
		n := &corev1.Node{}
		must(t, o.Into(n))
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				all[n.Name] = string(c.Status)
			}
		}
	}
	return all
}

func (w *lostWorld) serves(t *testing.T) bool {
	t.Helper()
	endpoint, ok := w.lab.Server.Endpoint(key)
	return ok && endpoint.Serves()
}

func TestRestore(t *testing.T) {
	w := newLostWorld(t)
	if w.serves(t) {
		t.Error("without control plane machines, there is no API server")
	}
	old, err := w.group(t).Watch(store.Nodes(), "", w.group(t).Revision(), store.Selector{})
	must(t, err)
	w.add(t, "cp2", true, w.restoreData(w.sum))
	w.reconcile(t, "cp2")
	if !w.serves(t) {
		t.Fatalf("the API server does not start: %v", states(w.read(t, "cp2")))
	}
	g := w.group(t)
	if diff := cmp.Diff(w.objects, objects(g)); diff != "" {
		t.Errorf("objects: -want +got:\n%s", diff)
	}
	if g.Revision() <= w.revision+bump {
		t.Errorf("revision %d, want more than that of the backup, %d", g.Revision(), w.revision+bump)
	}
	if _, _, err := old.Poll(); !apierrors.IsResourceExpired(err) {
		t.Errorf("a watch from before: %v", err)
	}
	if _, err := store.Get[corev1.ConfigMap](g, metav1.NamespaceSystem, kubeadmConfigName); err != nil {
		t.Errorf("kubeadm init uploads its configuration: %v", err)
	}
	want := map[string]string{"cp1": "Unknown", "cp2": "True", "w1": "True"}
	if diff := cmp.Diff(want, nodes(t, g)); diff != "" {
		t.Errorf("Nodes: -want +got:\n%s", diff)
	}
	all := w.clusters(t)
	if len(all) != 1 || len(all[0].Members) != 1 || all[0].Members[0].Machine.Name != "cp2" || all[0].Members[0].PeerURLs[0] != databasetest.Placeholder {
		t.Errorf("etcd: %+v", all)
	}
	for _, name := range []string{"w1", "w2", "cp2"} {
		w.reconcile(t, name)
	}
	if diff := cmp.Diff(want, nodes(t, g)); diff != "" {
		t.Errorf("a kubelet only registers when it starts: Nodes: -want +got:\n%s", diff)
	}
	w.restart(t)
	w.reconcile(t, "cp2")
	must(t, w.group(t).SetFaults(faults.Faults{}))
	if diff := cmp.Diff(w.objects, objects(w.group(t))); diff != "" {
		t.Errorf("objects after a restart: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(want, nodes(t, w.group(t))); diff != "" {
		t.Errorf("Nodes after a restart: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(all, w.clusters(t)); diff != "" {
		t.Errorf("etcd after a restart: -want +got:\n%s", diff)
	}
}

// TestRestoreOfAnotherCluster: machines join with the CA that the cluster has, which kubeadm init publishes in place of that of the backup.
func TestRestoreOfAnotherCluster(t *testing.T) {
	w := newLostWorld(t)
	must(t, store.Remove[corev1.ConfigMap](w.group(t), metav1.NamespacePublic, clusterInfoName))
	_, err := store.Ensure(w.group(t), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: clusterInfoName}, Data: map[string]string{clusterInfoKey: "of another one"},
	})
	must(t, err)
	w.backUp(t)
	w.add(t, "cp2", true, w.restoreData(w.sum))
	w.reconcile(t, "cp2")
	info, err := store.Get[corev1.ConfigMap](w.group(t), metav1.NamespacePublic, clusterInfoName)
	must(t, err)
	config, err := clientcmd.Load([]byte(info.Data[clusterInfoKey]))
	must(t, err)
	if got, want := strings.TrimSpace(string(config.Clusters[""].CertificateAuthorityData)), strings.TrimSpace(w.cert); got != want {
		t.Errorf("published CA %s, want %s", got, want)
	}
}

// TestPlaceholdersBlockJoin joins a restored cluster before the peer URL of its member is updated.
func TestPlaceholdersBlockJoin(t *testing.T) {
	w := newLostWorld(t)
	w.add(t, "cp2", true, w.restoreData(w.sum))
	w.reconcile(t, "cp2")
	w.join(t, "cp3", true)
	if failed := w.condition(t, "cp3", inmemoryv1.EtcdProvisionedCondition); !strings.Contains(failed.Message, "cannot fetch cluster info from peer urls") {
		t.Errorf("joining with a placeholder: %+v", failed)
	}
}

func TestRestoreFails(t *testing.T) {
	for _, test := range []struct {
		reason  string
		sum     string
		served  func(*lostWorld) []byte
		message string
	}{
		{"a wrong hash", strings.Repeat("0", 64), func(w *lostWorld) []byte { return w.content }, "the SHA-256 of the data of etcd is"},
		{"an incomplete file", "", func(w *lostWorld) []byte { return w.content[:100] }, "the SHA-256 of the data of etcd is"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			w := newLostWorld(t)
			before, revision := objects(w.group(t)), w.group(t).Revision()
			sum := w.sum
			if test.sum != "" {
				sum = test.sum
			}
			w.served = test.served(w)
			w.add(t, "cp2", true, w.restoreData(sum))
			w.reconcile(t, "cp2")
			failed := w.condition(t, "cp2", inmemoryv1.NodeProvisionedCondition)
			if failed.Reason != inmemoryv1.KubeadmFailedReason || !strings.Contains(failed.Message, test.message) || strings.Contains(failed.Message, databasetest.Key) {
				t.Errorf("NodeProvisioned is %+v", failed)
			}
			if _, found := nodes(t, w.group(t))["cp2"]; found || w.serves(t) {
				t.Error("the machine must have no Node and no API server")
			}
			if diff := cmp.Diff(before, objects(w.group(t))); diff != "" || len(w.clusters(t)) != 1 {
				t.Errorf("objects have changed from revision %d: %s", revision, diff)
			}
			w.Clock.Step(kubeadmTimeout)
			w.reconcile(t, "cp2")
			if failed := w.condition(t, "cp2", inmemoryv1.NodeProvisionedCondition); failed.Severity != clusterv1.ConditionSeverityError {
				t.Errorf("kubeadm must give up: %+v", failed)
			}
		})
	}
}

// TestInitWithoutData replaces a lost control plane without a backup: the cluster is empty.
func TestInitWithoutData(t *testing.T) {
	w := newLostWorld(t)
	w.add(t, "cp2", true, w.initData())
	w.reconcile(t, "cp2")
	for _, name := range []string{"before", "later"} {
		if _, err := store.Get[corev1.ConfigMap](w.group(t), "default", name); !apierrors.IsNotFound(err) {
			t.Errorf("ConfigMap %s: %v", name, err)
		}
	}
	if diff := cmp.Diff(map[string]string{"cp2": "True"}, nodes(t, w.group(t))); diff != "" {
		t.Errorf("Nodes: -want +got:\n%s", diff)
	}
	if !w.serves(t) {
		t.Error("the empty cluster must serve")
	}
	if _, err := store.Get[corev1.Service](w.group(t), "default", "kubernetes"); err != nil {
		t.Errorf("kubeadm's objects must exist: %v", err)
	}
}
