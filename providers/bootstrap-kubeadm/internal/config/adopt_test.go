package config

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// A backup is restored without owners and status: generated data gets its owner again, data of users does not.
func TestOrphanedDataIsOwnedAgain(t *testing.T) {
	generated := func(change func(*corev1.Secret)) *corev1.Secret {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", Labels: map[string]string{clusterv1.ClusterNameLabel: "test"}},
			Type:       clusterv1.ClusterSecretType,
			Data:       map[string][]byte{"value": []byte("data"), "format": []byte("cloud-config")},
		}
		change(secret)
		return secret
	}
	for _, tc := range []struct {
		reason, name string
		change       func(*corev1.Secret)
		owned        bool
	}{
		{"generated data", "m", func(*corev1.Secret) {}, true},
		{"data of another type", "m", func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }, false},
		{"data without a format", "m", func(s *corev1.Secret) { delete(s.Data, "format") }, false},
		{"data of another cluster", "m", func(s *corev1.Secret) { s.Labels[clusterv1.ClusterNameLabel] = "other" }, false},
		{"data of another name", "mine", func(s *corev1.Secret) { s.Name = "mine" }, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			machine, config, secret := newMachine("m", true), newConfig("m", clusterSpec()), generated(tc.change)
			machine.Spec.Bootstrap.DataSecretName = ptr.To(tc.name)
			secret.Namespace = config.Namespace
			w := newWorld(t, machine, newCluster(), config, secret)
			for range 2 {
				w.mustReconcile(t, "m")
			}
			got := &corev1.Secret{}
			testenv.Must(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(secret), got))
			if owned := metav1.IsControlledBy(got, w.config(t, "m")); owned != tc.owned || string(got.Data["value"]) != "data" {
				t.Errorf("owners %v, data %q; want it to be owned: %t", got.OwnerReferences, got.Data["value"], tc.owned)
			}
			if name := w.config(t, "m").Status.DataSecretName; name != tc.name {
				t.Errorf("the config has data %q", name)
			}
		})
	}
}
