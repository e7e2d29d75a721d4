package storageversion

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// Keep makes a definition of Cluster API go on storing the version that live stores, if it still serves it: once an object is stored
// in a newer version, a release that does not have this version cannot be installed again. Users change it when they no longer need the way
// back. Definitions of other projects store what these decide.
func Keep(desired, live *unstructured.Unstructured) {
	if desired.GetKind() != manifest.KindCRD {
		return
	}
	group, _, _ := unstructured.NestedString(desired.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(desired.Object, "spec", "names", "kind")
	if conversion.Shared().Versions(schema.GroupKind{Group: group, Kind: kind}) == nil {
		return // Nothing converts it, whatever is stored.
	}
	stored := storageVersion(versionsOf(live))
	if !serves(versionsOf(desired), stored) {
		return
	}
	storeIn(desired, stored)
}

// storeIn makes a definition store a version, which it has.
func storeIn(crd *unstructured.Unstructured, stored string) {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, item := range versions {
		if v, ok := item.(map[string]any); ok {
			v["storage"] = v["name"] == stored
		}
	}
	_ = unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions") // It cannot fail: it was read there.
}
