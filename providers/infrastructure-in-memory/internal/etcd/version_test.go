package etcd

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

func TestVersion(t *testing.T) {
	for _, tc := range []struct{ reason, image, want string }{
		{"the image of the Pod", "registry.k8s.io/etcd:3.5.15-0", "3.5.15"},
		{"a registry with a port", "localhost:5000/etcd:3.6.4-0", "3.6.4"},
		{"a tag that is no version", "registry.k8s.io/etcd:stable", "3.6.8"},
		{"there is no Pod", "", "3.6.8"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			g := newGroup(t, "a")
			if tc.image != "" {
				_, err := store.Ensure(g, &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "etcd-a"},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "etcd", Image: tc.image}}},
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			if got := versionOf(g, Machine{Name: "a", UID: "a"}).String(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
