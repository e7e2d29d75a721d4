package move

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/move/side"
	"sigs.k8s.io/cluster-api/clusterctl/move/transfer"
)

// restored returns a Cluster as it is in a directory: paused by a move.
func restored(name string) *clusterv1beta1.Cluster {
	return &clusterv1beta1.Cluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1beta1.GroupVersion.String(), Kind: "Cluster"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Annotations: map[string]string{transfer.MoveAnnotation: "m"}},
		Spec:       clusterv1beta1.ClusterSpec{Paused: true},
	}
}

// restore is a directory, and the cluster that it is restored in.
func restore(t *testing.T, existing ...client.Object) *Mover {
	t.Helper()
	dir := t.TempDir()
	owned := &clusterv1beta1.Machine{TypeMeta: metav1.TypeMeta{APIVersion: clusterv1beta1.GroupVersion.String(), Kind: "Machine"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a-machine", UID: "a-machine", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: clusterv1beta1.GroupVersion.String(), Kind: "Cluster", Name: "new", UID: "new"}}}}
	for _, o := range []client.Object{restored("new"), restored("kept"), restored("paused"), owned} {
		content, err := json.Marshal(o)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("%T_ns_%s.yaml", o, o.GetName())), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	scheme, err := management.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Cluster", "Machine"} {
		mapper.Add(clusterv1beta1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(append(existing, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})...).Build()
	return &Mover{Directory: dir, Target: &side.Side{Client: c, Name: "target"}, Progress: &silent{}}
}

// A dry run says what happens to each object, in the order in which it happens, and writes nothing.
func TestDryRunFromDirectory(t *testing.T) {
	kept := restored("kept")
	kept.Annotations, kept.Spec.Paused = nil, false
	m := restore(t, kept, restored("paused"))
	planned, err := m.DryRunFromDirectory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range planned {
		got = append(got, p.Action+" "+p.Object.String())
	}
	want := []string{"keep Cluster ns/kept", "create Cluster ns/new", "resume Cluster ns/paused", "create Machine ns/a-machine"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if paused := versions(t, m)["paused"]; !strings.HasSuffix(paused, " paused") || len(versions(t, m)) != 2 {
		t.Errorf("a dry run writes: %v", versions(t, m))
	}
	before := versions(t, m)
	result, err := m.FromDirectory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Restored{Objects: 4, Existing: 2}, result); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	after := versions(t, m)
	if after["kept"] != before["kept"] || strings.HasSuffix(after["paused"], " paused") || after["new"] == "" {
		t.Errorf("the command does something else than its dry run: before %v, after %v", before, after)
	}

	unknown := restore(t)
	unknown.Target = nil
	planned, err = unknown.DryRunFromDirectory(t.Context())
	if err != nil || len(planned) != 4 || planned[0].Action != "create or keep" {
		t.Errorf("without a target: %v, %v", planned, err)
	}
}

// What makes the command fail makes its dry run fail.
func TestDryRunFromDirectoryFails(t *testing.T) {
	deleted := restored("kept")
	deleted.Finalizers = []string{"x"}
	m := restore(t, deleted)
	if err := m.Target.Delete(t.Context(), deleted); err != nil {
		t.Fatal(err)
	}
	const want = "Cluster ns/kept in the target cluster: the object with its name is being deleted"
	_, dry := m.DryRunFromDirectory(t.Context())
	_, err := m.FromDirectory(t.Context())
	for what, err := range map[string]error{"the dry run": dry, "the command": err} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", what, err, want)
		}
	}
}

// versions returns the resource versions of Clusters, and which of them are paused.
func versions(t *testing.T, m *Mover) map[string]string {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(clusterv1beta1.GroupVersion.WithKind("ClusterList"))
	if err := m.Target.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, o := range list.Items {
		found[o.GetName()] = o.GetResourceVersion()
		if paused, _, _ := unstructured.NestedBool(o.Object, "spec", "paused"); paused {
			found[o.GetName()] += " paused"
		}
	}
	return found
}

// A target that lacks a provider gets nothing.
func TestDirectoryOfUnknownKinds(t *testing.T) {
	m := restore(t)
	content := `{"apiVersion": "infrastructure.example.com/v1", "kind": "Cloud", "metadata": {"name": "c", "namespace": "ns", "uid": "c"}}`
	if err := os.WriteFile(filepath.Join(m.Directory, "Cloud_ns_c.yaml"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "the target cluster does not serve kind Cloud of infrastructure.example.com/v1"
	_, dry := m.DryRunFromDirectory(t.Context())
	_, err := m.FromDirectory(t.Context())
	for what, err := range map[string]error{"the dry run": dry, "the command": err} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", what, err, want)
		}
	}
	if got := versions(t, m); len(got) != 0 {
		t.Errorf("objects were created: %v", got)
	}
}
