package rotation

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/rotation/authority"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// change returns the rotation of an authority.
func change(t *testing.T, a fleetv1.Authority) authority.Change {
	t.Helper()
	pair, err := (*pki.Keys)(nil).Generate(authority.Purpose(a), object.Now())
	testenv.Must(t, err)
	c, err := authority.Generate(a, pair.Certificate, "", object.Now())
	testenv.Must(t, err)
	return c
}

// API servers never remove certificates of clients of aggregated API servers.
func TestForget(t *testing.T) {
	w := newWorld(t).workload
	changes := map[fleetv1.Authority]authority.Change{fleetv1.ClusterCA: change(t, fleetv1.ClusterCA)}
	proxy := change(t, fleetv1.FrontProxyCA) // It is not rotated.
	c := changes[fleetv1.ClusterCA]
	config := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: authenticationConfigMap},
		Data: map[string]string{
			"client-ca-file": string(c.Certificates(authority.Both)), "requestheader-client-ca-file": string(proxy.Certificates(authority.Both)), "other": "kept",
		},
	}
	testenv.Must(t, w.Create(t.Context(), config))
	for range 2 {
		testenv.Must(t, forget(t.Context(), w.ForController().Client, changes))
	}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(config), config))
	want := map[string]string{
		"client-ca-file": string(c.New.Certificate), "requestheader-client-ca-file": string(proxy.Certificates(authority.Both)), "other": "kept",
	}
	if diff := cmp.Diff(want, config.Data); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(w.Writes) != 1 {
		t.Errorf("writes %q, want one", w.Writes)
	}
}

// Tokens of another key are removed, so that kube-controller-manager signs new ones; the rotation waits for them.
func TestReissueTokens(t *testing.T) {
	w := newWorld(t).workload
	key := change(t, fleetv1.ServiceAccountKey).New.Certificate
	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "legacy"}, Type: corev1.SecretTypeServiceAccountToken,
		Data: map[string][]byte{corev1.ServiceAccountTokenKey: []byte("e30.e30.c2ln"), "ca.crt": []byte("ca")},
	}
	other := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}, Data: map[string][]byte{"token": []byte("t")}}
	testenv.Must(t, w.Create(t.Context(), token), w.Create(t.Context(), other))
	for range 2 {
		if err := reissueTokens(t.Context(), w.ForController().Client, key); !errors.Is(err, errNotSettled) {
			t.Errorf("err = %v, want to wait", err)
		}
	}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(token), token), w.Get(t.Context(), client.ObjectKeyFromObject(other), other))
	if len(token.Data[corev1.ServiceAccountTokenKey]) > 0 || len(token.Data["ca.crt"]) == 0 || len(other.Data["token"]) == 0 || len(w.Writes) != 1 {
		t.Errorf("Secrets have %v and %v after %q", token.Data, other.Data, w.Writes)
	}
}

func TestRootPublished(t *testing.T) {
	w := newWorld(t).workload
	c := change(t, fleetv1.ClusterCA)
	root := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: rootConfigMap}, Data: map[string]string{rootKey: string(c.Old)},
	}
	testenv.Must(t, rootPublished(t.Context(), w, c.Certificates(authority.Both)), w.Create(t.Context(), root))
	if err := rootPublished(t.Context(), w, c.Certificates(authority.Both)); !errors.Is(err, errNotSettled) {
		t.Errorf("the old certificate is enough: %v", err)
	}
	root.Data[rootKey] = string(c.Certificates(authority.Both))
	testenv.Must(t, w.Update(t.Context(), root), rootPublished(t.Context(), w, c.Certificates(authority.Both)))
}
