package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
)

// GroupVersion is the API group and version of the hooks in this package.
var GroupVersion = schema.GroupVersion{Group: "hooks.runtime.cluster.x-k8s.io", Version: "v1alpha1"}

// AddToCatalog registers the hooks of this package in a catalog.
func AddToCatalog(c *runtimecatalog.Catalog) error {
	b := &runtimecatalog.Builder{GroupVersion: GroupVersion}
	registerDiscovery(b)
	registerLifecycleHooks(b)
	registerTopologyMutationHooks(b)
	registerUpgradeHooks(b)
	registerInPlaceHooks(b)
	return b.AddToCatalog(c)
}
