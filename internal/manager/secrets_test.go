package manager

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

func secret(name, cluster, origin string) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Data:       map[string][]byte{"from": []byte(origin)},
	}
	if cluster != "" {
		s.Labels = map[string]string{"cluster.x-k8s.io/cluster-name": cluster}
	}
	return s
}

func TestSecretClientGet(t *testing.T) {
	emptied := secret("quick-machine", "quick", "")
	emptied.Type, emptied.Data = clusterv1.ClusterSecretType, nil
	c := &secretClient{
		cached: fake.NewFakeClient(secret("quick-kubeconfig", "quick", "cache"), emptied),
		Client: fake.NewFakeClient(secret("quick-kubeconfig", "quick", "API server"), secret("cloud-credentials", "", "API server"),
			secret("quick-machine", "quick", "API server")),
	}
	tests := map[string]struct {
		reason, name, want string
	}{
		"of a cluster": {"a cached Secret costs no request", "quick-kubeconfig", "cache"},
		"bootstrap":    {"data that the cache does not hold is asked for", "quick-machine", "API server"},
		"unlabelled":   {"a Secret that the cache does not hold is asked for", "cloud-credentials", "API server"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := &corev1.Secret{}
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: tt.name}, got); err != nil {
				t.Fatal(err)
			}
			if from := string(got.Data["from"]); from != tt.want {
				t.Errorf("%s: it comes from the %s", tt.reason, from)
			}
		})
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "none"}, &corev1.Secret{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("a Secret that does not exist is not found, got %v", err)
	}
	raw := &unstructured.Unstructured{}
	raw.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "cloud-credentials"}, raw); err != nil {
		t.Errorf("an unlabelled Secret can be read in any form: %v", err)
	}
}

func TestSecretClientList(t *testing.T) {
	c := &secretClient{
		cached: fake.NewFakeClient(secret("quick-kubeconfig", "quick", "cache")),
		Client: fake.NewFakeClient(secret("quick-kubeconfig", "quick", "API server"), secret("cloud-credentials", "", "API server")),
	}
	tests := map[string]struct {
		reason string
		opts   []client.ListOption
		want   []string
	}{
		"all":           {"the cache does not hold all Secrets", nil, []string{"API server", "API server"}},
		"of a cluster":  {"the cache holds all Secrets of a cluster", []client.ListOption{client.MatchingLabels{"cluster.x-k8s.io/cluster-name": "quick"}}, []string{"cache"}},
		"of clusters":   {"and of all clusters", []client.ListOption{client.HasLabels{"cluster.x-k8s.io/cluster-name"}}, []string{"cache"}},
		"of no cluster": {"but not those of none", []client.ListOption{notOfClusters{}}, []string{"API server"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			list := &corev1.SecretList{}
			if err := c.List(t.Context(), list, tt.opts...); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range list.Items {
				got = append(got, string(s.Data["from"]))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// notOfClusters selects the Secrets without the label.
type notOfClusters struct{}

func (notOfClusters) ApplyToList(o *client.ListOptions) {
	selector, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "cluster.x-k8s.io/cluster-name", Operator: metav1.LabelSelectorOpDoesNotExist},
	}})
	if err != nil {
		panic(err)
	}
	o.LabelSelector = selector
}

func TestLeanSecrets(t *testing.T) {
	fields := []metav1.ManagedFieldsEntry{{Manager: "somebody"}}
	for _, c := range []struct {
		reason string
		kind   corev1.SecretType
		data   []string
		want   []string
	}{
		{"bootstrap data is never read from the cache", clusterv1.ClusterSecretType, []string{"value", "format"}, nil},
		{"kubeconfigs are", clusterv1.ClusterSecretType, []string{"value"}, []string{"value"}},
		{"so are certificates", clusterv1.ClusterSecretType, []string{"tls.crt", "tls.key"}, []string{"tls.crt", "tls.key"}},
		{"users' own Secrets may have any keys", corev1.SecretTypeOpaque, []string{"format", "value"}, []string{"format", "value"}},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{ManagedFields: fields}, Type: c.kind, Data: map[string][]byte{}}
		for _, key := range c.data {
			secret.Data[key] = []byte("x")
		}
		out, err := lean(secret)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := out.(*corev1.Secret)
		if !ok {
			t.Fatalf("got %T, want a Secret", out)
		}
		if diff := cmp.Diff(c.want, slices.Sorted(maps.Keys(got.Data))); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.reason, diff)
		}
		if got.ManagedFields != nil {
			t.Errorf("%s: managed fields are kept", c.reason)
		}
	}
}
