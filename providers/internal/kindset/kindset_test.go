package kindset

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newSet returns a set whose clusters are ConfigMaps, and whose machines are Secrets, with the label of the backend.
func newSet(backend string) Set[string, string] {
	named := func(obj client.Object) (string, bool) { return obj.GetName(), obj.GetLabels()["backend"] == backend }
	return Set[string, string]{
		ClusterKind: "FooCluster", MachineKind: "FooMachine", Backend: backend,
		ClusterOf: func(obj client.Object) (string, bool) {
			if _, ok := obj.(*corev1.ConfigMap); !ok {
				return "", false
			}
			return named(obj)
		},
		MachineOf: func(obj client.Object) (string, bool) {
			if _, ok := obj.(*corev1.Secret); !ok {
				return "", false
			}
			return named(obj)
		},
	}
}

func TestControllers(t *testing.T) {
	for reason, tc := range map[string]struct{ backend, cluster, machine string }{
		"one backend":      {"", "foocluster", "foomachine"},
		"several backends": {"inMemory", "foocluster-inmemory", "foomachine-inmemory"},
	} {
		s := newSet(tc.backend)
		if s.ClusterController() != tc.cluster || s.MachineController() != tc.machine {
			t.Errorf("%s: %s, %s", reason, s.ClusterController(), s.MachineController())
		}
	}
}

func TestItems(t *testing.T) {
	labeled := func(name, backend string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Labels: map[string]string{"backend": backend}}
	}
	s := newSet("a")
	clusters := &corev1.ConfigMapList{Items: []corev1.ConfigMap{
		{ObjectMeta: labeled("one", "a")}, {ObjectMeta: labeled("other backend", "b")}, {ObjectMeta: labeled("two", "a")},
	}}
	if diff := cmp.Diff([]string{"one", "two"}, s.ClusterItems(clusters)); diff != "" {
		t.Errorf("clusters, -want +got:\n%s", diff)
	}
	machines := &corev1.SecretList{Items: []corev1.Secret{{ObjectMeta: labeled("m", "a")}, {ObjectMeta: labeled("other backend", "b")}}}
	if diff := cmp.Diff([]string{"m"}, s.MachineItems(machines)); diff != "" {
		t.Errorf("machines, -want +got:\n%s", diff)
	}
	if got := s.ClusterItems(machines); len(got) > 0 {
		t.Errorf("clusters among machines: %v", got)
	}
}

func TestObjectsOfOtherBackends(t *testing.T) {
	s := newSet("a")
	own := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", Labels: map[string]string{"backend": "a"}}}
	if got, err := s.Cluster(own); err != nil || got != "c" {
		t.Errorf("own object: %q, %v", got, err)
	}
	own.Labels["backend"] = "b"
	if _, err := s.Cluster(own); err == nil || !strings.Contains(err.Error(), `ns/c is not a FooCluster with backend "a"`) {
		t.Errorf("another backend: %v", err)
	}
	if _, err := s.Machine(own); err == nil || !strings.Contains(err.Error(), "FooMachine") {
		t.Errorf("another kind: %v", err)
	}
}
