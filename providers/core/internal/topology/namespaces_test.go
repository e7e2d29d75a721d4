package topology

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestClassOfAnotherNamespace is about a Cluster whose class and templates are in another namespace: all its objects are in its own.
func TestClassOfAnotherNamespace(t *testing.T) {
	w := newWorld(t)
	shared := w.namespace
	own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "own-"}}
	testenv.Must(t, w.Create(t.Context(), own))
	c := w.cluster("c")
	c.Namespace = own.Name
	c.Spec.Topology.ClassRef.Namespace = shared
	w.created(c)
	w.reconciled(c)

	made := w.summary(c)
	same := w.cluster("c")
	w.created(same)
	w.reconciled(same)
	if diff := cmp.Diff(len(w.summary(same)), len(made)); diff != "" {
		t.Errorf("%v of a class in another namespace, -with a class in the own one +got:\n%s", made, diff)
	}
	if ref := c.Spec.ControlPlaneRef; ref.Name == "" {
		t.Error("the Cluster has no control plane")
	}

	class := &clusterv1.ClusterClass{}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKey{Namespace: shared, Name: "simple"}, class))
	want := map[client.ObjectKey]bool{client.ObjectKeyFromObject(c): true, client.ObjectKeyFromObject(same): true}
	got := map[client.ObjectKey]bool{}
	for _, request := range ofClass(w.cached)(t.Context(), class) {
		got[request.NamespacedName] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a change of the class reconciles other Clusters, -want +got:\n%s", diff)
	}
	template := class.DeepCopy()
	template.Name, template.OwnerReferences = "template", []metav1.OwnerReference{{Kind: "ClusterClass", Name: "simple"}}
	if requests := byOwner(w.cached)(t.Context(), template); len(requests) != len(want) {
		t.Errorf("a change of a template reconciles %v, want the Clusters of all namespaces", requests)
	}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(c), c))
	class.Namespace = own.Name
	if requests := ofClass(w.cached)(t.Context(), class); requests != nil {
		t.Errorf("a class with the same name in the Cluster's namespace reconciles %v", requests)
	}
}
