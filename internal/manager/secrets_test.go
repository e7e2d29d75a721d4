package manager

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
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
	c := &secretClient{
		cached: fake.NewFakeClient(secret("quick-kubeconfig", "quick", "cache")),
		Client: fake.NewFakeClient(secret("quick-kubeconfig", "quick", "API server"), secret("cloud-credentials", "", "API server")),
	}
	tests := map[string]struct {
		reason, name, want string
	}{
		"of a cluster": {"a cached Secret costs no request", "quick-kubeconfig", "cache"},
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
