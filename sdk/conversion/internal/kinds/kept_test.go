package kinds

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/cluster-api/sdk/conversion/internal/lossless"
)

const older = lossless.SpokeAnnotation

// topologyOf is a Cluster of v1beta1 with what v1beta2 does not have.
const topologyOf = `{metadata: {name: a, namespace: b}, spec: {
	infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1alpha7, kind: OwnCluster, name: i, uid: u},
	topology: {class: q, version: v1.30.0, rolloutAfter: "2026-01-01T00:00:00Z",
	variables: [{name: a, definitionFrom: x, value: {n: {}}}, {name: b, definitionFrom: z, value: 1}],
	workers: {machineDeployments: [{class: w, name: m0, nodeDrainTimeout: 1.5s, variables: {overrides: [{name: a, definitionFrom: x, value: 2}]}}]}}}}`

// Managers of v1.14 remove their own annotation when they convert to the hub, and keep the one that they do not know. What it has is
// restored nevertheless, also when a client writes an object that they have converted.
func TestConversionByOtherManagers(t *testing.T) {
	convert := converters()["Cluster"]
	spoke := parseHub(t, topologyOf)
	hub := convert[0](t, spoke)
	if lossless.At(hub, "metadata", "annotations")[older] == nil {
		t.Fatalf("nothing is kept: %s", show(hub))
	}

	// As they convert it down: without what the hub does not have.
	theirs := convert[1](t, withoutAnnotation(hub))
	lossless.Put(theirs, lossless.At(hub, "metadata", "annotations")[older], "metadata", "annotations", older)
	lossless.Put(theirs, int64(5), "spec", "topology", "controlPlane", "replicas") // A client changes something.

	want := normal(t, parseHub(t, topologyOf), byName(nil)["Cluster"].Spoke.New())
	lossless.Put(want, int64(5), "spec", "topology", "controlPlane", "replicas")
	fillNamespaces(want)
	got := convert[1](t, convert[0](t, theirs))
	if diff := cmp.Diff(content(want, "spec"), content(got, "spec")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if annotations := lossless.At(got, "metadata", "annotations"); annotations[older] != nil {
		t.Errorf("clients of v1beta1 see %v", annotations)
	}
}

// withoutAnnotation returns an object without annotations.
func withoutAnnotation(o object) object {
	result := runtime.DeepCopyJSON(o)
	delete(lossless.At(result, "metadata"), "annotations")
	return result
}

// The annotation that other managers read has objects of the hub only, and is there only if it is needed.
func TestAnnotationForOtherManagers(t *testing.T) {
	convert := converters()["Cluster"]
	hub := parseHub(t, `{metadata: {name: a, namespace: b}, spec: {paused: false, clusterNetwork: {serviceDomain: d}}, status: {phase: Pending}}`)
	kept := take(t, convert[1](t, hub))
	want := object{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
		"spec": object{"paused": false, "clusterNetwork": object{"serviceDomain": "d"}}}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	delete(lossless.At(hub, "spec"), "paused")
	if kept := take(t, convert[1](t, hub)); kept != nil {
		t.Errorf("v1beta1 has everything, but there is %v", kept)
	}
}

// Data without apiVersion and kind is that of the hub.
func TestAnnotationWithoutKind(t *testing.T) {
	spoke := parseHub(t, `{metadata: {name: a, annotations: {cluster.x-k8s.io/conversion-data: '{"spec":{"paused":false}}'}}, spec: {}}`)
	hub := converters()["Cluster"][0](t, spoke)
	if got := lossless.At(hub, "spec")["paused"]; got != false {
		t.Errorf("paused is %v", got)
	}
}

// A reference has the version that a client wrote, whatever is installed then and later; without one, it has the installed version, or v1beta1.
func TestVersionsOfReferences(t *testing.T) {
	installed := func(version string) Lookup {
		return func(context.Context, schema.GroupKind) (string, bool) { return version, version != "" }
	}
	for _, tt := range []struct {
		reason                string
		written               string
		whenWritten, whenRead string
		want                  string
	}{
		{"the provider is not installed", "v1alpha7", "", "", "v1alpha7"},
		{"the provider was installed later", "v1alpha7", "", "v1beta1", "v1alpha7"},
		{"a newer version is installed", "v1alpha7", "v1beta1", "v1beta1", "v1alpha7"},
		{"the provider is no longer installed", "v1alpha7", "v1beta1", "", "v1alpha7"},
		{"the version is the installed one, and a newer one follows", "v1beta1", "v1beta1", "v1beta2", "v1beta2"},
		{"the version is that of kinds which are not installed", "v1beta1", "", "", "v1beta1"},
	} {
		spoke := parseHub(t, strings.Replace(topologyOf, "v1alpha7", tt.written, 1))
		delete(lossless.At(spoke, "spec", infrastructureRef), "uid")
		before, after := byName(installed(tt.whenWritten))["Cluster"], byName(installed(tt.whenRead))["Cluster"]
		hub := over(before.ToHub, before.Spoke, before.Hub)(t, spoke)
		got := over(after.ToSpoke, after.Hub, after.Spoke)(t, hub)
		if got := lossless.At(got, "spec", infrastructureRef)["apiVersion"]; got != "infrastructure.cluster.x-k8s.io/"+tt.want {
			t.Errorf("%s: got %v, want version %s", tt.reason, got, tt.want)
		}
	}
}

// Items of lists are found again by what identifies them; those without an identity by their position.
func TestItemsOfLists(t *testing.T) {
	convert := converters()["ClusterClass"]
	hub := parseHub(t, `{metadata: {name: a}, spec: {patches: [
		{name: p, definitions: [{selector: {apiVersion: g/v1, kind: K, matchResources: {controlPlane: false, infrastructureCluster: true}},
			jsonPatches: [{op: add, path: /spec, value: {a: {}}}]}]},
		{name: q, definitions: [{selector: {apiVersion: g/v1, kind: L, matchResources: {controlPlane: true, infrastructureCluster: false}}}]}]}}`)
	spoke := convert[1](t, hub)
	patches, _ := lossless.At(spoke, "spec")["patches"].([]any)
	lossless.At(spoke, "spec")["patches"] = []any{patches[1], patches[0]}
	lossless.Items(lossless.Parts(spoke, "spec", "patches[]")[1], "definitions")[0]["jsonPatches"] = []any{object{"op": "remove", "path": "/spec/b"}}

	want := parseHub(t, `{spec: {patches: [
		{name: q, definitions: [{selector: {apiVersion: g/v1, kind: L, matchResources: {controlPlane: true, infrastructureCluster: false}}}]},
		{name: p, definitions: [{selector: {apiVersion: g/v1, kind: K, matchResources: {controlPlane: false, infrastructureCluster: true}},
			jsonPatches: [{op: remove, path: /spec/b}]}]}]}}`)
	got := convert[0](t, spoke)
	if diff := cmp.Diff(lossless.At(want, "spec")["patches"], lossless.At(got, "spec")["patches"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
