package move

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/clusterctl/move/side"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// foreign is the ClusterClass of a Cluster of another namespace.
const foreign = `
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: InMemoryClusterTemplate
metadata: {name: it, owner: ClusterClass common}
spec: {template: {spec: {}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: InMemoryClusterTemplate
metadata: {name: unrelated}
spec: {template: {spec: {}}}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata: {name: common}
spec:
  infrastructure: {ref: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: InMemoryClusterTemplate, name: it}}
  controlPlane: {ref: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: InMemoryClusterTemplate, name: it}}
`

// sharing is a world in which Cluster b2 uses a class of another namespace, and a Cluster of a third namespace uses the class of the moved one.
type sharing struct {
	*world
	classes string
}

func newSharing(t *testing.T, name string) *sharing {
	w := &sharing{world: newWorld(t, name, "a1", "b2"), classes: name + "-classes"}
	ctx := t.Context()
	f := &fixture{t: t, namespace: w.classes, side: w.sides[0], uids: map[string]types.UID{}}
	testenv.Must(t, ignoreExists(w.sides[0].Create(ctx, namespaceObject(w.classes))))
	f.apply(foreign)
	user := (&fixture{t: t, namespace: name, side: w.sides[0]}).object("Cluster", "b2")
	testenv.Must(t, w.sides[0].Patch(ctx, user, client.RawPatch(types.MergePatchType,
		[]byte(`{"spec":{"topology":{"class":"common","classNamespace":"`+w.classes+`"}}}`))))
	testenv.Must(t, ignoreExists(w.sides[0].Create(ctx, namespaceObject(name+"-else"))))
	other := &unstructured.Unstructured{}
	testenv.Must(t, yaml.Unmarshal([]byte(`{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: other, namespace: `+name+`-else},
		spec: {topology: {class: class, classNamespace: `+name+`, version: v1.30.0}}}`), &other.Object))
	testenv.Must(t, w.sides[0].Create(ctx, other))
	w.want = read(t, w.sides[0], name)
	return w
}

// there checks that everything is in the target with the class of the other namespace, and that the shared classes are still in the source,
// as they were.
func (w *sharing) there(when string, classes state) {
	w.Helper()
	source, target := read(w.T, w.sides[0], w.name), read(w.T, w.sides[1], w.name)
	if diff := cmp.Diff(w.want, target, cmp.AllowUnexported(state{})); diff != "" {
		w.Fatalf("%s: target: -want +got:\n%s", when, diff)
	}
	stays := state{contents: maps.Clone(w.want.contents), paused: map[string]bool{"ClusterClass class": false}, moved: map[string]bool{}}
	maps.DeleteFunc(stays.contents, func(key, _ string) bool {
		return !slices.Contains([]string{"ClusterClass class", "InMemoryClusterTemplate it"}, key)
	})
	if diff := cmp.Diff(stays, source, cmp.AllowUnexported(state{})); diff != "" {
		w.Fatalf("%s: what stays in the source: -want +got:\n%s", when, diff)
	}
	if diff := cmp.Diff(classes, read(w.T, w.sides[0], w.classes), cmp.AllowUnexported(state{})); diff != "" {
		w.Fatalf("%s: the other namespace of the source: -want +got:\n%s", when, diff)
	}
	copied := read(w.T, w.sides[1], w.classes)
	classes.contents = maps.Clone(classes.contents)
	delete(classes.contents, "InMemoryClusterTemplate unrelated")
	if diff := cmp.Diff(classes, copied, cmp.AllowUnexported(state{})); diff != "" {
		w.Fatalf("%s: the other namespace of the target: -want +got:\n%s", when, diff)
	}
}

// TestSharedClasses interrupts moves of Clusters that share ClusterClasses with other namespaces: these are copied, and stay.
func TestSharedClasses(t *testing.T) {
	w := newSharing(t, "sharing")
	classes := read(t, w.sides[0], w.classes)
	step := 2 * stride
	if os.Getenv(everyVariable) != "" {
		step = 1
	}
	for n := 0; ; n += step {
		killed := &testenv.Wire{Limit: n, Lose: n/step%2 == 0}
		err := w.move(killed)
		when := "killed after " + killed.Last()
		if err != nil {
			if err := w.move(&testenv.Wire{Limit: -1}); err != nil {
				t.Fatalf("%s: the next run: %v", when, err)
			}
		}
		w.there(when, classes)
		if len(killed.Log()) <= n {
			break
		}
		w.back(when)
	}
}

// back moves everything back, and removes what stays in the target.
func (w *sharing) back(when string) {
	w.Helper()
	w.at = 1
	status(w.T, w.sides[1], w.name)
	testenv.Must(w.T, w.move(&testenv.Wire{Limit: -1}))
	w.arrived(when + ", and back")
	for _, o := range []client.Object{
		&clusterv1beta1.ClusterClass{},
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "InMemoryClusterTemplate"}},
	} {
		testenv.Must(w.T, w.sides[1].DeleteAllOf(w.Context(), o, client.InNamespace(w.classes)))
	}
}

// status sets what the checks of a move require.
func status(t *testing.T, s *side.Side, namespace string) {
	t.Helper()
	for key := range read(t, s, namespace).contents {
		kind, name, _ := strings.Cut(key, " ")
		if text := statusOf(kind); text != "" {
			o := (&fixture{t: t, namespace: namespace, side: s}).object(kind, name)
			testenv.Must(t, s.Status().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(text))))
		}
	}
}

// TestSharedClassesDiffer keeps the class of the target, and says so.
func TestSharedClassesDiffer(t *testing.T) {
	w := newSharing(t, "differing")
	f := &fixture{t: t, namespace: w.classes, side: w.sides[1], uids: map[string]types.UID{}}
	testenv.Must(t, ignoreExists(w.sides[1].Create(t.Context(), namespaceObject(w.classes))))
	f.apply(strings.ReplaceAll(foreign, "name: it", "name: newer"))
	before := read(t, w.sides[1], w.classes)
	text, err := runCut(t, &testenv.Wire{Limit: -1}, w.name, w.envs[0], w.envs[1], nil)
	testenv.Must(t, err)
	if want := "The target cluster has ClusterClass differing-classes/common with another spec, and keeps it"; !strings.Contains(text, want) {
		t.Errorf("%q is missing in:\n%s", want, text)
	}
	after := read(t, w.sides[1], w.classes)
	delete(after.contents, "InMemoryClusterTemplate it")
	if diff := cmp.Diff(before, after, cmp.AllowUnexported(state{})); diff != "" {
		t.Errorf("the target's class and its templates are kept, -before +after:\n%s", diff)
	}
}
