package journey

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// userKubeconfig creates a kubeconfig Secret, whose client certificate expires so soon that one of the control plane would be renewed.
func (w *World) userKubeconfig(cluster client.ObjectKey, server string) {
	w.t.Helper()
	secret := &corev1.Secret{}
	if err := w.Client.Get(w.t.Context(), pki.SecretKey(cluster, pki.ClusterCA), secret); err != nil {
		w.t.Fatal(err)
	}
	ca, err := pki.CAFrom(secret)
	if err != nil {
		w.t.Fatal(err)
	}
	pair, err := ca.Issue(pki.Request{CommonName: "alice", Organizations: []string{"system:masters"}, Validity: 24 * time.Hour}, time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["own"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: secret.Data[pki.CertificateKey]}
	config.AuthInfos["alice"] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.Certificate, ClientKeyData: pair.Key}
	config.Contexts["own"] = &clientcmdapi.Context{Cluster: "own", AuthInfo: "alice"}
	config.CurrentContext = "own"
	text, err := clientcmd.Write(*config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.Applied(pki.NewSecret(cluster, pki.Kubeconfig, map[string][]byte{pki.KubeconfigKey: text}, nil))
}

// ownSecret is what a user writes into a Secret, and who owns it.
type ownSecret struct {
	Data   map[string][]byte
	Owners []metav1.OwnerReference
}

// secrets returns the Secrets of a user by name.
func (w *World) secrets(cluster client.ObjectKey) map[string]ownSecret {
	w.t.Helper()
	found := map[string]ownSecret{}
	for _, purpose := range []pki.Purpose{pki.ClusterCA, pki.EtcdCA, pki.FrontProxyCA, pki.ServiceAccount, pki.Kubeconfig} {
		secret := &corev1.Secret{}
		if err := w.Client.Get(w.t.Context(), pki.SecretKey(cluster, purpose), secret); err != nil {
			w.t.Fatal(err)
		}
		found[secret.Name] = ownSecret{secret.Data, secret.OwnerReferences}
	}
	return found
}

// TestSecretsOfUsers creates a Cluster with all CAs, the service account key and the kubeconfig of a user, in both algorithms. They are
// used, and not changed, renewed, owned or deleted.
func TestSecretsOfUsers(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []pki.KeyAlgorithm{pki.RSA2048, pki.ECDSA} {
		t.Run(string(algorithm), func(t *testing.T) {
			t.Parallel()
			w := shared.World(t)
			key := client.ObjectKey{Namespace: w.Namespace, Name: "c"}
			port := w.freePort()
			createKeys(t, w, key, algorithm)
			w.userKubeconfig(key, managedServer(port))
			// Users may forget the label.
			forgotten := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: pki.SecretName("c", pki.FrontProxyCA)}}
			w.update(forgotten, func() { delete(forgotten.Labels, clusterv1.ClusterNameLabel) })
			before := w.secrets(key)

			c := w.Plain(Plain{ControlPlanes: 1, Workers: 1, Infrastructure: fmt.Sprintf("controlPlaneEndpoint: {host: %s, port: %d}", managedHost, port)}.String())
			c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1), c.WorkloadMatches)
			c.plane(func(k *controlplanev1.KubeadmControlPlane) { k.Spec.Replicas = ptr.To[int32](3) })
			c.Eventually("the control plane is scaled up", Ready, ControlPlanes(3), Workers(1), c.WorkloadMatches)
			c.plane(func(k *controlplanev1.KubeadmControlPlane) { k.Spec.Version = newer })
			old := c.Snapshot()
			c.Eventually("the control plane is upgraded", Ready, ControlPlanes(3), NewMachines((*Snapshot).ControlPlane, old), c.WorkloadMatches)
			c.Gone()
			if diff := cmp.Diff(before, w.secrets(key)); diff != "" {
				t.Errorf("Secrets of the user were changed (-before +after):\n%s", diff)
			}
		})
	}
}
