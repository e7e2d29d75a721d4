package patches

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// metadataFixture has labels and annotations in the class's templates, and in the objects as they are before patches.
func metadataFixture(t *testing.T, patches string) *Input {
	t.Helper()
	in := fixture(t, "[]", patches, `{workers: {machineDeployments: [{class: default-worker, name: small}]}}`)
	for i := range in.MachineDeployments {
		in.MachineDeployments[i].Bootstrap.Source.SetLabels(map[string]string{"old": "a", "removed": "b"})
	}
	md := &in.MachineDeployments[0]
	md.Bootstrap.Target.SetLabels(map[string]string{"old": "a", "removed": "b", clusterv1.ClusterNameLabel: "c"})
	md.Bootstrap.Target.SetAnnotations(map[string]string{clusterv1.TemplateClonedFromNameAnnotation: "a"})
	in.ControlPlane.Target.SetLabels(map[string]string{"fromTopology": "x", clusterv1.ClusterNameLabel: "c"})
	return in
}

const onBootstrap = `selector: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, matchResources: {machineDeploymentClass: {names: [default-worker]}}}`

func TestMetadata(t *testing.T) {
	type want struct{ bootstrapLabels, bootstrapAnnotations, controlPlane map[string]string }
	unpatched := want{
		bootstrapLabels:      map[string]string{"old": "a", "removed": "b", clusterv1.ClusterNameLabel: "c"},
		bootstrapAnnotations: map[string]string{clusterv1.TemplateClonedFromNameAnnotation: "a"},
		controlPlane:         map[string]string{"fromTopology": "x", clusterv1.ClusterNameLabel: "c"},
	}
	with := func(change func(*want)) want {
		out := unpatched
		change(&out)
		return out
	}
	inline := func(selector, changes string) string {
		return `[{name: p, definitions: [{` + selector + `, jsonPatches: [` + changes + `]}]}]`
	}
	const external = `[{name: p, external: {generatePatchesExtension: a.b}}]`
	tests := []struct {
		reason, patches string
		generated       []Patch
		want            want
		err             string
	}{
		{"labels and annotations of a template", inline(onBootstrap, `{op: add, path: /metadata/labels/new, value: c}, {op: remove, path: /metadata/labels/removed}, {op: add, path: /metadata/annotations/example.com~1a, value: d}`), nil,
			with(func(w *want) {
				w.bootstrapLabels = map[string]string{"old": "a", "new": "c", clusterv1.ClusterNameLabel: "c"}
				w.bootstrapAnnotations = map[string]string{"example.com/a": "d", clusterv1.TemplateClonedFromNameAnnotation: "a"}
			}), ""},
		{"a map is replaced as a whole, except for what the topology sets", inline(onBootstrap, `{op: add, path: /metadata/labels, value: {new: c, cluster.x-k8s.io/cluster-name: other, topology.cluster.x-k8s.io/owned: x}}`), nil,
			with(func(w *want) { w.bootstrapLabels = map[string]string{"new": "c", clusterv1.ClusterNameLabel: "c"} }), ""},
		{"a patch of the spec leaves them", inline(onBootstrap, `{op: add, path: /spec/template/spec/x, value: 1}`), nil, unpatched, ""},
		{"an object gets those of its template's content", inline(onControlPlane, `{op: add, path: /spec/template/metadata, value: {labels: {new: c, fromTopology: other}}}, {op: add, path: /metadata/labels/notMine, value: x}`), nil,
			with(func(w *want) {
				w.controlPlane = map[string]string{"new": "c", "fromTopology": "x", clusterv1.ClusterNameLabel: "c"}
			}), ""},
		{"an extension", external, []Patch{
			{Item: 3, Type: JSONMergePatch, Patch: []byte(`{"metadata":{"name":"ignored","labels":{"new":"c","removed":null}}}`)},
		}, with(func(w *want) {
			w.bootstrapLabels = map[string]string{"old": "a", "new": "c", clusterv1.ClusterNameLabel: "c"}
		}), ""},
		{"an extension replaces the whole map with a JSON patch", external, []Patch{
			{Item: 3, Type: JSONPatch, Patch: []byte(`[{"op":"add","path":"/metadata/labels","value":{"new":"c"}}]`)},
		}, with(func(w *want) { w.bootstrapLabels = map[string]string{"new": "c", clusterv1.ClusterNameLabel: "c"} }), ""},
		{"a label that is not a string", inline(onBootstrap, `{op: add, path: /metadata/labels/new, value: 1}`), nil, unpatched,
			"metadata.labels must be a map of strings after all patches"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			in := metadataFixture(t, tt.patches)
			engine, err := New(in.Class, &extension{patches: tt.generated})
			if err != nil {
				t.Fatal(err)
			}
			if err = engine.Apply(t.Context(), in); tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
			md := &in.MachineDeployments[0].Bootstrap
			got := want{md.Target.GetLabels(), md.Target.GetAnnotations(), in.ControlPlane.Target.GetLabels()}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(map[string]string{"old": "a", "removed": "b"}, md.Source.GetLabels()); diff != "" || md.Target.GetName() == "ignored" {
				t.Errorf("the class's template or the name changed: -want +got:\n%s", diff)
			}
		})
	}
}

// TestMetadataOfLaterPatches: a later patch gets the metadata of an earlier one, and templates without labels have none.
func TestMetadataOfLaterPatches(t *testing.T) {
	in := metadataFixture(t, `
- {name: p, definitions: [{`+onBootstrap+`, jsonPatches: [{op: add, path: /metadata/annotations/a, value: b}, {op: remove, path: /metadata/labels}]}]}
- {name: q, external: {generatePatchesExtension: a.b}}`)
	x := &extension{}
	engine, err := New(in.Class, x)
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Apply(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	seen, err := parseJSON(x.generated[0].Items[3].Object)
	if err != nil {
		t.Fatal(err)
	}
	want := tree(t, `{name: `+in.MachineDeployments[0].Bootstrap.Source.GetName()+`, namespace: default, annotations: {a: b}}`)
	if diff := cmp.Diff(want, seen.(map[string]any)["metadata"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
