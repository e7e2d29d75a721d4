package pki_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/keyutil"

	"sigs.k8s.io/cluster-api/sdk/pki"
)

var blue = types.NamespacedName{Namespace: "default", Name: "blue"}

func TestSecretKey(t *testing.T) {
	for want, c := range map[string]struct {
		reason  string
		purpose pki.Purpose
	}{
		"blue-kubeconfig":            {"users fetch the kubeconfig by this name", pki.Kubeconfig},
		"blue-ca":                    {"users provide the cluster's CA by this name", pki.ClusterCA},
		"blue-etcd":                  {"users provide etcd's CA by this name", pki.EtcdCA},
		"blue-proxy":                 {"users provide the front proxy's CA by this name", pki.FrontProxyCA},
		"blue-sa":                    {"users bring the key of service accounts by this name", pki.ServiceAccount},
		"blue-apiserver-etcd-client": {"users bring the client of an external etcd by this name", pki.APIServerEtcdClient},
	} {
		t.Run(want, func(t *testing.T) {
			got := pki.SecretKey(blue, c.purpose)
			if diff := cmp.Diff(types.NamespacedName{Namespace: "default", Name: want}, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestNewSecret(t *testing.T) {
	owner := metav1.OwnerReference{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: "Cluster", Name: "blue", UID: "uid"}
	labels := map[string]string{"cluster.x-k8s.io/cluster-name": "blue"}
	data := pki.Pair{Certificate: []byte("c"), Key: []byte("k")}.Data()
	for name, c := range map[string]struct {
		reason string
		owner  *metav1.OwnerReference
		want   *corev1.Secret
	}{
		"Owned": {
			reason: "the label lets managers cache it, the owner lets it go with the cluster", owner: &owner,
			want: &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "default", Name: "blue-ca", Labels: labels, OwnerReferences: []metav1.OwnerReference{owner},
					Annotations: map[string]string{"cluster.x-k8s.io/generated-for": "blue"},
				},
				Type: "cluster.x-k8s.io/secret",
				Data: map[string][]byte{"tls.crt": []byte("c"), "tls.key": []byte("k")},
			},
		},
		"NotOwned": {
			reason: "without an owner it has no references",
			want: &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "blue-ca", Labels: labels},
				Type:       "cluster.x-k8s.io/secret",
				Data:       map[string][]byte{"tls.crt": []byte("c"), "tls.key": []byte("k")},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, pki.NewSecret(blue, pki.ClusterCA, data, c.owner)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestCAFrom(t *testing.T) {
	pair := pemOf(t, newCA(t, ""))
	for name, c := range map[string]struct {
		reason    string
		data      map[string][]byte
		wantErr   string
		wantIssue bool
	}{
		"Whole":      {reason: "a CA in a Secret is read back", data: pair.Data(), wantIssue: true},
		"WithoutKey": {reason: "a user may keep the key", data: pki.Pair{Certificate: pair.Certificate}.Data()},
		"Empty":      {reason: "the error names the Secret and what it lacks", wantErr: `secret default/blue-ca has no data under key "tls.crt"`},
		"KeyOnly":    {reason: "a key alone is not a CA", data: map[string][]byte{"tls.key": pair.Key}, wantErr: `secret default/blue-ca has no data under key "tls.crt"`},
		"Certificate": {
			reason: "the error contains the Secret without a certificate", data: map[string][]byte{"tls.crt": []byte("hello")},
			wantErr: "secret default/blue-ca: parsing the certificate: data does not contain any valid RSA or ECDSA certificates",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := pki.CAFrom(pki.NewSecret(blue, pki.ClusterCA, c.data, nil))
			if diff := cmp.Diff(c.wantErr, message(err)); diff != "" {
				t.Fatalf("%s: error -want +got:\n%s", c.reason, diff)
			}
			if err != nil {
				return
			}
			if _, err := a.Issue(pki.Request{CommonName: "x", Validity: time.Hour}, now); (err == nil) != c.wantIssue {
				t.Errorf("%s: issuing ended with %v, want success %t", c.reason, err, c.wantIssue)
			}
		})
	}
}

func TestGenerate(t *testing.T) {
	rsa := &metav1.ObjectMeta{Annotations: map[string]string{pki.AlgorithmAnnotation: "RSA-2048"}}
	for name, c := range map[string]struct {
		reason  string
		keys    *pki.Keys
		purpose pki.Purpose
		choice  metav1.Object
		want    string
	}{
		"CA":         {"a CA with the default algorithm", nil, pki.ClusterCA, &metav1.ObjectMeta{}, "CA ECDSA P-256"},
		"Etcd":       {"etcd's CA", pki.NewKeys(""), pki.EtcdCA, &metav1.ObjectMeta{}, "CA ECDSA P-256"},
		"FrontProxy": {"the algorithm of the manager", pki.NewKeys(pki.ECDSAP384), pki.FrontProxyCA, &metav1.ObjectMeta{}, "CA ECDSA P-384"},
		"SA":         {"a key pair, no certificate", nil, pki.ServiceAccount, &metav1.ObjectMeta{}, "public key ECDSA P-256"},
		"RSA":        {"the algorithm of the cluster", pki.NewKeys(pki.ECDSAP384), pki.ClusterCA, rsa, "CA RSA 2048"},
		"RSA SA":     {"which programs that publish the keys of ServiceAccounts may need", nil, pki.ServiceAccount, rsa, "public key RSA 2048"},
	} {
		t.Run(name, func(t *testing.T) {
			pair, err := c.keys.Generate(c.purpose, now, c.choice)
			if err != nil {
				t.Fatal(err)
			}
			// This is how the API server reads the file with the keys that verify tokens; it takes certificates, too.
			public, err := keyutil.ParsePublicKeysPEM(pair.Certificate)
			if err != nil {
				t.Fatal(err)
			}
			got := "public key "
			if made, err := pki.CAFrom(pki.NewSecret(blue, c.purpose, pair.Data(), nil)); err == nil && made.Key != nil && made.Certificate.IsCA {
				got = "CA "
			}
			if diff := cmp.Diff(c.want, got+keyKind(public[0])); diff != "" || !publicOf(t, pair.Key).Equal(public[0]) {
				t.Errorf("%s: the halves must belong together; -want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestSplitSecretName(t *testing.T) {
	for _, cluster := range []string{"a", "a-b", "ca", "a-ca", "a-etcd", "apiserver-etcd-client"} {
		for _, p := range pki.Purposes() {
			if got, purpose, ok := pki.SplitSecretName(pki.SecretName(cluster, p)); got != cluster || purpose != p || !ok {
				t.Errorf("%s is %q, %q, %t", pki.SecretName(cluster, p), got, purpose, ok)
			}
		}
	}
	for _, name := range []string{"", "ca", "-ca", "a", "a-", "a-client", "a-etcd-client", "aca"} {
		if cluster, p, ok := pki.SplitSecretName(name); ok {
			t.Errorf("%q is %q, %q", name, cluster, p)
		}
	}
}
