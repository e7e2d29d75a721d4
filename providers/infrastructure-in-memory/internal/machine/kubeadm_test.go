package machine

import (
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/faults"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

const goodToken = "abcdef.0123456789abcdef"

// kubeadmWorld has a cluster CA for bootstrap data.
type kubeadmWorld struct {
	*world
	ca   *pki.CA
	cert string
}

func newKubeadmWorld(t *testing.T, algorithm pki.KeyAlgorithm, objects ...client.Object) *kubeadmWorld {
	t.Helper()
	k := &kubeadmWorld{}
	for _, purpose := range []pki.Purpose{pki.ClusterCA, pki.EtcdCA} {
		ca, err := pki.NewCA(algorithm, now)
		if err != nil {
			t.Fatal(err)
		}
		pair, err := ca.PEM()
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, pki.NewSecret(key, purpose, pair.Data(), nil))
		if purpose == pki.ClusterCA {
			k.ca, k.cert = ca, string(pair.Certificate)
		}
	}
	k.world = newWorld(t, append(objects, newCluster(), newInfra())...)
	return k
}

func cloudConfig(path, content, ca string) string {
	indent := func(text string) string {
		return "      " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n      ") + "\n"
	}
	text := "## template: jinja\n#cloud-config\n\nwrite_files:\n"
	if ca != "" {
		text += "  - path: /etc/kubernetes/pki/ca.crt\n    content: |\n" + indent(ca)
	}
	return text + "  - path: " + path + "\n    content: |\n" + indent(content)
}

func (k *kubeadmWorld) initData() string {
	return cloudConfig("/run/kubeadm/kubeadm.yaml",
		"---\napiVersion: kubeadm.k8s.io/v1beta3\nkind: ClusterConfiguration\n---\napiVersion: kubeadm.k8s.io/v1beta3\n"+
			"kind: InitConfiguration\n", k.cert)
}

func (k *kubeadmWorld) joinData(token, hash string, controlPlane bool) string {
	text := fmt.Sprintf("---\napiVersion: kubeadm.k8s.io/v1beta3\nkind: JoinConfiguration\ndiscovery:\n  bootstrapToken:\n"+
		"    token: %q\n    caCertHashes: [%q]\n", token, hash)
	ca := ""
	if controlPlane {
		text, ca = text+"controlPlane: {}\n", k.cert
	}
	return cloudConfig("/run/kubeadm/kubeadm-join-config.yaml", text, ca)
}

// add creates a machine with its bootstrap data.
func (k *kubeadmWorld) add(t *testing.T, name string, controlPlane bool, data string) {
	t.Helper()
	objects := newMachine(name, controlPlane)
	objects[0].(*clusterv1.Machine).Spec.Bootstrap.DataSecretName = ptr.To(name + "-data")
	for _, o := range append(objects, build.BootstrapData(name+"-data", data)) {
		testenv.Must(t, k.Create(t.Context(), o))
	}
}

func (k *kubeadmWorld) group(t *testing.T) *cloud.Group {
	t.Helper()
	group, found := k.lab.Cloud.Group(key)
	if !found {
		t.Fatal("the workload cluster does not exist")
	}
	return group
}

func (k *kubeadmWorld) token(t *testing.T, change func(map[string][]byte)) {
	t.Helper()
	id, secret, _ := strings.Cut(goodToken, ".")
	data := map[string][]byte{
		"token-id": []byte(id), "token-secret": []byte(secret), "usage-bootstrap-signing": []byte("true"),
		"usage-bootstrap-authentication": []byte("true"), "expiration": []byte(now.Add(time.Hour).Format(time.RFC3339)),
	}
	change(data)
	_ = store.Remove[corev1.Secret](k.group(t), "kube-system", "bootstrap-token-"+id)
	if _, err := store.Ensure(k.group(t), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-" + id}, Type: corev1.SecretTypeBootstrapToken, Data: data,
	}); err != nil {
		t.Fatal(err)
	}
}

func as(map[string][]byte) {}

func (k *kubeadmWorld) clusters(t *testing.T) []etcd.Cluster {
	t.Helper()
	all, err := etcd.Clusters(k.group(t))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestJoinFails checks why kubeadm join fails, that it retries, and that it gives up.
func TestJoinFails(t *testing.T) {
	tests := []struct {
		reason  string
		data    func(*kubeadmWorld) string
		before  func(*testing.T, *kubeadmWorld)
		message string
		cure    func(*testing.T, *kubeadmWorld) // nil if a retry cannot succeed
	}{
		{"the token does not exist", nil, func(*testing.T, *kubeadmWorld) {}, "not found in the cluster",
			func(t *testing.T, k *kubeadmWorld) { k.token(t, as) }},
		{"the token has expired", nil, func(t *testing.T, k *kubeadmWorld) {
			k.token(t, func(d map[string][]byte) { d["expiration"] = []byte(now.Format(time.RFC3339)) })
		}, "expired", func(t *testing.T, k *kubeadmWorld) { k.token(t, as) }},
		{"the token's secret is wrong", nil, func(t *testing.T, k *kubeadmWorld) {
			k.token(t, func(d map[string][]byte) { d["token-secret"] = []byte("fedcba9876543210") })
		}, "does not match", func(t *testing.T, k *kubeadmWorld) { k.token(t, as) }},
		{"the token is not enabled for joining", nil, func(t *testing.T, k *kubeadmWorld) {
			k.token(t, func(d map[string][]byte) { delete(d, "usage-bootstrap-authentication") })
		}, "is not enabled for both", func(t *testing.T, k *kubeadmWorld) { k.token(t, as) }},
		{"the API server does not respond", nil, func(t *testing.T, k *kubeadmWorld) {
			k.token(t, as)
			must(t, k.group(t).SetFaults(faults.Faults{Unresponsive: true}))
		}, "does not respond", func(t *testing.T, k *kubeadmWorld) { must(t, k.group(t).SetFaults(faults.Faults{})) }},
		{"etcd has no quorum", nil, func(t *testing.T, k *kubeadmWorld) {
			k.token(t, as)
			must(t, k.group(t).SetFaults(faults.Faults{DeadMachines: []string{"cp1"}}))
		}, "does not respond", func(t *testing.T, k *kubeadmWorld) { must(t, k.group(t).SetFaults(faults.Faults{})) }},
		{"another CA", func(k *kubeadmWorld) string { return k.joinData(goodToken, "sha256:00", false) },
			func(t *testing.T, k *kubeadmWorld) { k.token(t, as) }, "does not match any of caCertHashes", nil},
		{"a healthy Node has this name", nil, func(t *testing.T, k *kubeadmWorld) {
			k.token(t, as)
			_, err := store.Ensure(k.group(t), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1"}, Status: corev1.NodeStatus{
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}})
			must(t, err)
		}, "already exists", func(t *testing.T, k *kubeadmWorld) { must(t, store.Remove[corev1.Node](k.group(t), "", "w1")) }},
		{"a worker with data for init", func(k *kubeadmWorld) string { return k.initData() }, func(*testing.T, *kubeadmWorld) {},
			"another role", nil},
		{"no CA hashes", func(k *kubeadmWorld) string {
			return strings.Replace(k.joinData(goodToken, "", false), `["`+`"]`, "[]", 1)
		}, func(t *testing.T, k *kubeadmWorld) { k.token(t, as) }, "caCertHashes can be unsafe", nil},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			k := newKubeadmWorld(t, pki.ECDSA)
			k.add(t, "cp1", true, k.initData())
			k.reconcile(t, "cp1")
			data := k.joinData(goodToken, pki.PublicKeyHash(k.ca.Certificate), false)
			if tt.data != nil {
				data = tt.data(k)
			}
			k.add(t, "w1", false, data)
			tt.before(t, k)
			if again := k.reconcile(t, "w1").RequeueAfter; again <= 0 || again > kubeadmRetry {
				t.Errorf("kubeadm retries after %s", again)
			}
			failed := k.condition(t, "w1", inmemoryv1.NodeProvisionedCondition)
			if failed.Reason != inmemoryv1.KubeadmFailedReason || failed.Severity != clusterv1.ConditionSeverityWarning ||
				!strings.Contains(failed.Message, tt.message) {
				t.Fatalf("NodeProvisioned is %+v, want a message with %q", failed, tt.message)
			}
			if strings.Contains(failed.Message, "0123456789abcdef") {
				t.Errorf("the message contains the token: %s", failed.Message)
			}
			if tt.cure != nil {
				tt.cure(t, k)
			} else {
				k.Clock.Step(kubeadmTimeout)
			}
			k.reconcile(t, "w1")
			after := k.condition(t, "w1", inmemoryv1.NodeProvisionedCondition)
			if tt.cure != nil && after.Status != corev1.ConditionTrue {
				t.Errorf("it must join when the cause is gone, have %+v", after)
			}
			if tt.cure == nil && after.Severity != clusterv1.ConditionSeverityError {
				t.Errorf("kubeadm must give up, have %+v", after)
			}
		})
	}
}

func TestKubeadmGivesUp(t *testing.T) {
	k := newKubeadmWorld(t, pki.ECDSA)
	k.add(t, "cp1", true, k.initData())
	k.reconcile(t, "cp1")
	k.add(t, "w1", false, k.joinData(goodToken, pki.PublicKeyHash(k.ca.Certificate), false))
	k.reconcile(t, "w1")
	k.Clock.Step(kubeadmTimeout)
	k.reconcile(t, "w1")
	k.token(t, as)
	if again := k.reconcile(t, "w1").RequeueAfter; again != 0 {
		t.Errorf("kubeadm retries after %s", again)
	}
	if _, err := store.Get[corev1.Node](k.group(t), "", "w1"); !apierrors.IsNotFound(err) {
		t.Errorf("the machine must not recover by itself: %v", err)
	}
}

func TestControlPlanesJoinAndInit(t *testing.T) {
	for _, algorithm := range []pki.KeyAlgorithm{pki.ECDSA, pki.RSA2048} {
		k := newKubeadmWorld(t, algorithm)
		k.add(t, "cp1", true, k.initData())
		k.reconcile(t, "cp1")
		k.token(t, as)
		join := k.joinData(goodToken, pki.PublicKeyHash(k.ca.Certificate), true)
		k.add(t, "cp2", true, join)
		k.reconcile(t, "cp2")
		if all := k.clusters(t); len(all) != 1 || len(all[0].Members) != 2 {
			t.Fatalf("%s: want one cluster with two members, have %+v", algorithm, all)
		}
		for _, name := range []string{"etcd-cp1", "etcd-cp2", "localhost"} {
			pair, err := k.ca.Issue(pki.Request{CommonName: "client", Validity: time.Hour}, now)
			must(t, err)
			certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
			must(t, err)
			connection, err := tls.Dial("tcp", k.lab.Server.Addresses()[key], &tls.Config{
				// Verified below.
				ServerName: name, MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, Certificates: []tls.Certificate{certificate},
			})
			if err != nil {
				t.Fatalf("%s: %s: %v", algorithm, name, err)
			}
			if err := connection.ConnectionState().PeerCertificates[0].VerifyHostname(name); err != nil {
				t.Errorf("%s: %v", algorithm, err)
			}
			must(t, connection.Close())
		}
		k.add(t, "cp3", true, k.initData())
		k.reconcile(t, "cp3")
		if all := k.clusters(t); len(all) != 2 || len(all[1].Members) != 1 || all[0].ID == all[1].ID {
			t.Errorf("%s: a second init must create another cluster, have %+v", algorithm, all)
		}
	}
}

// TestDeletedMachinesCostTheQuorum deletes control plane Machines without removing their members.
func TestDeletedMachinesCostTheQuorum(t *testing.T) {
	k := newKubeadmWorld(t, pki.ECDSA)
	k.add(t, "cp1", true, k.initData())
	k.reconcile(t, "cp1")
	k.token(t, as)
	join := k.joinData(goodToken, pki.PublicKeyHash(k.ca.Certificate), true)
	for _, name := range []string{"cp2", "cp3"} {
		k.add(t, name, true, join)
		k.reconcile(t, name)
	}
	for i, name := range []string{"cp1", "cp2"} {
		must(t, k.Delete(t.Context(), k.read(t, name)))
		k.reconcile(t, name)
		serves, err := etcd.Serves(k.group(t))
		if all := k.clusters(t); err != nil || serves != (i == 0) || len(all[0].Members) != 3 {
			t.Errorf("%d machines deleted: serves = %v, %+v, %v", i+1, serves, all, err)
		}
	}
	k.add(t, "cp4", true, join)
	k.reconcile(t, "cp4")
	if got := k.condition(t, "cp4", inmemoryv1.NodeProvisionedCondition); got.Reason != inmemoryv1.KubeadmFailedReason {
		t.Errorf("joining without a quorum must fail, have %+v", got)
	}
}

func TestEmptyBootstrapData(t *testing.T) {
	for reason, secret := range map[string]*corev1.Secret{
		"no Secret":  build.BootstrapData("another", "x"),
		"no value":   {ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "w1-data"}},
		"only space": build.BootstrapData("w1-data", " \n"),
	} {
		objects := newMachine("w1", false)
		objects[0].(*clusterv1.Machine).Spec.Bootstrap.DataSecretName = ptr.To("w1-data")
		w := newWorld(t, append(objects, newCluster(), newInfra(), secret)...)
		_, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "w1"}})
		if err == nil || !strings.Contains(err.Error(), "w1-data") {
			t.Errorf("%s: %v", reason, err)
		}
		if w.read(t, "w1").Spec.ProviderID != nil {
			t.Errorf("%s: the machine must not start", reason)
		}
	}
}

// TestMachinesWhoseStatusIsLostAreRestored simulates a move to another management cluster, which loses status.
func TestMachinesWhoseStatusIsLostAreRestored(t *testing.T) {
	waits := condition.False(inmemoryv1.VMProvisionedCondition, clusterv1.ConditionSeverityInfo,
		inmemoryv1.WaitingForClusterInfrastructureReason, "")
	for reason, conditions := range map[string]clusterv1.Conditions{
		"the status is empty":                          nil,
		"the first status says that the machine waits": {waits},
	} {
		t.Run(reason, func(t *testing.T) {
			k := newKubeadmWorld(t, pki.ECDSA)
			k.add(t, "cp1", true, k.initData())
			k.reconcile(t, "cp1")
			k.token(t, as)
			k.add(t, "cp2", true, k.joinData(goodToken, pki.PublicKeyHash(k.ca.Certificate), true))
			k.reconcile(t, "cp2")
			before := snapshot(t, k.world)
			for _, name := range []string{"cp1", "cp2"} {
				obj := k.read(t, name)
				obj.Status = inmemoryv1.InMemoryMachineStatus{}
				obj.SetV1Beta1Conditions(conditions)
				must(t, k.Status().Update(t.Context(), obj))
			}
			k.restart(t)
			for _, name := range []string{"cp2", "cp1"} {
				k.reconcile(t, name)
			}
			if after := snapshot(t, k.world); len(after) != len(before) {
				t.Errorf("before %v\nafter %v", before, after)
			}
		})
	}
}

// TestLeftoverMachine removes the finalizer of an InMemoryMachine, and creates another one with the same name.
func TestLeftoverMachine(t *testing.T) {
	k := newKubeadmWorld(t, pki.ECDSA)
	k.disk = t.TempDir()
	k.restart(t)
	k.add(t, "cp1", true, k.initData())
	k.reconcile(t, "cp1")
	before := k.clusters(t)
	obj := k.read(t, "cp1")
	obj.Finalizers = nil
	must(t, k.Update(t.Context(), obj))
	must(t, k.Delete(t.Context(), obj))
	again := newMachine("cp1", true)[1].(*inmemoryv1.InMemoryMachine)
	again.UID = "another"
	must(t, k.Create(t.Context(), again))
	k.restart(t)
	k.reconcile(t, "cp1")
	if all := k.clusters(t); len(all) != 1 || all[0].ID == before[0].ID || !all[0].HasQuorum() {
		t.Errorf("the first cluster must be lost, and its data not be reused: %+v, before %+v", all, before)
	}
}

func (w *world) condition(t *testing.T, name string, of clusterv1.ConditionType) clusterv1.Condition {
	t.Helper()
	for _, c := range w.read(t, name).GetV1Beta1Conditions() {
		if c.Type == of {
			return c
		}
	}
	return clusterv1.Condition{}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
