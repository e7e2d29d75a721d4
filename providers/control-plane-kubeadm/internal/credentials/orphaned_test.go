package credentials

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// A backup is restored without owners: generated Secrets get the control plane as their owner again, with one write each.
func TestOrphanedSecretsAreOwnedAgain(t *testing.T) {
	b := newBench(t)
	both := func() {
		t.Helper()
		for _, name := range []string{"certificates", "kubeconfig"} {
			if _, err := b.take(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
	}
	both()
	purposes := append([]pki.Purpose{pki.Kubeconfig}, pki.OfControlPlane(false)...)
	before := map[pki.Purpose]string{}
	for _, p := range purposes {
		secret := b.secret(t, p)
		before[p] = string(secret.Data[pki.CertificateKey]) + string(secret.Data[pki.KubeconfigKey])
		secret.OwnerReferences = nil
		testenv.Must(t, b.API.Update(t.Context(), secret))
	}
	b.API.Writes = nil
	both()
	for _, p := range purposes {
		secret := b.secret(t, p)
		if !metav1.IsControlledBy(secret, b.KCP) || len(secret.OwnerReferences) != 1 {
			t.Errorf("%s has the owners %v", secret.Name, secret.OwnerReferences)
		}
		if got := string(secret.Data[pki.CertificateKey]) + string(secret.Data[pki.KubeconfigKey]); got != before[p] {
			t.Errorf("%s has other data", secret.Name)
		}
	}
	want := []string{"patch Secret c-ca", "patch Secret c-etcd", "patch Secret c-proxy", "patch Secret c-sa", "patch Secret c-kubeconfig"}
	if !slices.Equal(want, b.API.Writes) {
		t.Errorf("writes %q, want %q", b.API.Writes, want)
	}
	b.API.Writes = nil
	if both(); len(b.API.Writes) != 0 {
		t.Errorf("writes in the second round: %q", b.API.Writes)
	}
}

// Secrets of users look like generated ones, but for the annotation; a copy of a Secret of another cluster has it, with another name.
func TestSecretsOfUsersAreNotOwned(t *testing.T) {
	for reason, annotations := range map[string]map[string]string{
		"a Secret as the documentation has it": nil, "a copy of another cluster's": {pki.GeneratedAnnotation: "other"},
	} {
		data := map[string][]byte{pki.CertificateKey: []byte("x"), pki.PrivateKeyKey: []byte("y")}
		mine := pki.NewSecret(newBench(t).Key(), pki.ClusterCA, data, nil)
		mine.Annotations = annotations
		kubeconfig := pki.NewSecret(newBench(t).Key(), pki.Kubeconfig, map[string][]byte{pki.KubeconfigKey: []byte("mine")}, nil)
		kubeconfig.Annotations = annotations
		b := newBench(t, mine, kubeconfig)
		for _, name := range []string{"certificates", "kubeconfig"} {
			if _, err := b.take(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range []pki.Purpose{pki.ClusterCA, pki.Kubeconfig} {
			if got := b.secret(t, p); len(got.OwnerReferences) != 0 {
				t.Errorf("%s: %s has owners: %v", reason, got.Name, got.OwnerReferences)
			}
		}
	}
}
