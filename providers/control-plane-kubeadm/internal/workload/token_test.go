package workload

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
)

func TestRevokeToken(t *testing.T) {
	token := func(id, description string) client.Object {
		return &corev1.Secret{ObjectMeta: system("bootstrap-token-" + id), Data: map[string][]byte{"description": []byte(description)}}
	}
	tests := []struct {
		reason, id string
		existed    bool
	}{
		{"the bootstrap provider's", "aaaaaa", true},
		{"a user's, with which other machines may join", "bbbbbb", false},
		{"it has expired, or was revoked before", "cccccc", false},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			c, _ := newCluster(t, token("aaaaaa", kubeadm.TokenDescription), token("bbbbbb", "mine"))
			existed, err := c.RevokeToken(t.Context(), tt.id)
			if err != nil || existed != tt.existed {
				t.Errorf("existed %t, error %v", existed, err)
			}
			left := &corev1.SecretList{}
			if err := c.Client.List(t.Context(), left, client.InNamespace(metav1.NamespaceSystem)); err != nil {
				t.Fatal(err)
			}
			want := []string{"bootstrap-token-aaaaaa", "bootstrap-token-bbbbbb"}
			if tt.existed {
				want = slices.Delete(want, 0, 1)
			}
			var names []string
			for _, s := range left.Items {
				names = append(names, s.Name)
			}
			if diff := cmp.Diff(want, names); diff != "" {
				t.Errorf("tokens (-want +got):\n%s", diff)
			}
		})
	}
}
