package apply

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// converted are the kinds whose versions managers convert in both directions, whatever is stored.
var converted = sync.OnceValue(func() []schema.GroupKind { return conversion.New(nil).Kinds() })

// keepStorage makes a definition of Cluster API go on storing the version that live stores, if it still serves it: once an object is stored
// in a newer version, a release that does not have this version cannot be installed again. Users change it when they no longer need the way
// back. Definitions of other projects store what these decide.
func keepStorage(desired, live *unstructured.Unstructured) {
	if desired.GetKind() != manifest.KindCRD {
		return
	}
	group, _, _ := unstructured.NestedString(desired.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(desired.Object, "spec", "names", "kind")
	if !slices.Contains(converted(), schema.GroupKind{Group: group, Kind: kind}) {
		return
	}
	spec, _ := desired.Object["spec"].(map[string]any)
	liveSpec, _ := live.Object["spec"].(map[string]any)
	stored := slices.IndexFunc(nestedMaps(liveSpec, "versions"), func(v map[string]any) bool { return v["storage"] == true })
	versions := nestedMaps(spec, "versions")
	if stored < 0 {
		return
	}
	name := nestedMaps(liveSpec, "versions")[stored]["name"]
	if !slices.ContainsFunc(versions, func(v map[string]any) bool { return v["name"] == name && v["served"] == true }) {
		return
	}
	for _, v := range versions {
		v["storage"] = v["name"] == name
	}
}
