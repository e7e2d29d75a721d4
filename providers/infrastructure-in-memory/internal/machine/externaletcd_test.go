package machine

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// etcdFiles are the files for external etcd that the bootstrap provider writes.
const etcdFiles = `  - {path: /etc/kubernetes/pki/etcd/ca.crt, content: x}
  - {path: /etc/kubernetes/pki/apiserver-etcd-client.crt, content: x}
  - {path: /etc/kubernetes/pki/apiserver-etcd-client.key, content: x}
`

// externalInit is bootstrap data of kubeadm init with external etcd.
func (k *kubeadmWorld) externalInit() string {
	return strings.Replace(k.initData(), "kind: ClusterConfiguration\n",
		"kind: ClusterConfiguration\n      etcd: {external: {endpoints: [\"https://etcd.example:2379\"]}}\n", 1)
}

// hasEtcd reports whether a machine has an etcd Pod or member.
func (k *kubeadmWorld) hasEtcd(t *testing.T, name string) bool {
	t.Helper()
	_, err := store.Get[corev1.Pod](k.group(t), metav1.NamespaceSystem, "etcd-"+name)
	all, loadErr := etcd.Clusters(k.group(t))
	must(t, loadErr)
	return err == nil || len(all) > 0
}

// TestExternalEtcd checks that machines with external etcd have none of their own, also those that join, and after a restart without
// journals.
func TestExternalEtcd(t *testing.T) {
	ca, err := pki.NewCA(pki.ECDSA, now)
	must(t, err)
	pair, err := ca.PEM()
	must(t, err)
	keyless := pki.NewSecret(key, pki.EtcdCA, map[string][]byte{pki.CertificateKey: pair.Certificate}, nil)
	k := newKubeadmWorld(t, pki.ECDSA)
	must(t, k.Update(t.Context(), keyless))
	k.add(t, "cp1", true, k.externalInit()+etcdFiles)
	k.reconcile(t, "cp1")
	k.token(t, as)
	k.add(t, "cp2", true, k.joinData(goodToken, pki.PublicKeyHash(k.ca.Certificate), true)+etcdFiles)
	k.reconcile(t, "cp2")
	for range 2 {
		for _, name := range []string{"cp1", "cp2"} {
			if k.hasEtcd(t, name) || k.condition(t, name, inmemoryv1.APIServerProvisionedCondition).Status != corev1.ConditionTrue {
				t.Errorf("%s: want an API server and no etcd: %v", name, states(k.read(t, name)))
			}
		}
		k.restart(t)
		k.reconcile(t, "cp2")
		k.reconcile(t, "cp1")
	}
	config, err := store.Get[corev1.ConfigMap](k.group(t), metav1.NamespaceSystem, "kubeadm-config")
	must(t, err)
	if !strings.Contains(config.Data["ClusterConfiguration"], "external:") {
		t.Errorf("kubeadm must store that etcd is external: %s", config.Data["ClusterConfiguration"])
	}
}

// TestExternalEtcdNeedsItsFiles checks that kubeadm fails without the certificates for external etcd.
func TestExternalEtcdNeedsItsFiles(t *testing.T) {
	k := newKubeadmWorld(t, pki.ECDSA)
	k.add(t, "cp1", true, k.externalInit())
	k.reconcile(t, "cp1")
	got := k.condition(t, "cp1", inmemoryv1.EtcdProvisionedCondition)
	if got.Reason != inmemoryv1.KubeadmFailedReason || !strings.Contains(got.Message, "etcd is external") {
		t.Errorf("have %+v", got)
	}
}

// TestZone checks that Nodes have the failure domain of their Machine as their zone.
func TestZone(t *testing.T) {
	k := newKubeadmWorld(t, pki.ECDSA)
	k.add(t, "cp1", true, k.initData())
	m := &clusterv1.Machine{}
	must(t, k.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "cp1"}, m))
	m.Spec.FailureDomain = "a"
	must(t, k.Update(t.Context(), m))
	k.reconcile(t, "cp1")
	node, err := store.Get[corev1.Node](k.group(t), "", "cp1")
	must(t, err)
	if got := node.Labels[corev1.LabelTopologyZone]; got != "a" {
		t.Errorf("zone %q, want a", got)
	}
}
