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

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
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
		"bootstrap":    {"data that is not in the cache is read live", "quick-machine", "API server"},
		"unlabelled":   {"a Secret that is not in the cache is read live", "cloud-credentials", "API server"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := &corev1.Secret{}
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: tt.name}, got); err != nil {
				t.Fatal(err)
			}
			if from := string(got.Data["from"]); from != tt.want {
				t.Errorf("%s: it is read from the %s", tt.reason, from)
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
		"all":           {"the cache does not have all Secrets", nil, []string{"API server", "API server"}},
		"of a cluster":  {"the cache has all Secrets of a cluster", []client.ListOption{client.MatchingLabels{"cluster.x-k8s.io/cluster-name": "quick"}}, []string{"cache"}},
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
		name   string
		data   []string
		size   int
		want   []string
	}{
		{"bootstrap data is not read from the cache", "quick-md-0-abcde", []string{"value", "format"}, 1, nil},
		{"kubeconfigs are", "quick-kubeconfig", []string{"value", "more"}, 1, []string{"more", "value"}},
		{"so are certificates", "quick-ca", []string{"tls.crt", "tls.key"}, 1, []string{"tls.crt", "tls.key"}},
		{"a kubeconfig of another cluster has not the label of this one", "other-kubeconfig", []string{"value"}, 1, nil},
		{"whatever users give the label to is not", "quick-dump", []string{"a", "b"}, 1, nil},
		{"nothing that is read is so large", "quick-kubeconfig", []string{"value"}, 200 << 10, nil},
	} {
		secret := secret(c.name, "quick", "")
		secret.ManagedFields, secret.Data = fields, map[string][]byte{}
		for _, key := range c.data {
			secret.Data[key] = make([]byte, c.size)
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
