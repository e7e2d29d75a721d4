package v1alpha1

import (
	"fmt"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// AddToCatalog registers the hooks of this package in a catalog.
func AddToCatalog(c *runtimecatalog.Catalog) error {
	all := runtimecatalog.New()
	if err := runtimehooksv1.AddToCatalog(all); err != nil {
		return fmt.Errorf("describing the hooks: %w", err)
	}
	b := &runtimecatalog.Builder{GroupVersion: GroupVersion}
	for name, hook := range map[string]runtimecatalog.Hook{
		"Discovery":                    Discovery,
		"BeforeClusterCreate":          BeforeClusterCreate,
		"AfterControlPlaneInitialized": AfterControlPlaneInitialized,
		"BeforeClusterUpgrade":         BeforeClusterUpgrade,
		"AfterControlPlaneUpgrade":     AfterControlPlaneUpgrade,
		"AfterClusterUpgrade":          AfterClusterUpgrade,
		"BeforeClusterDelete":          BeforeClusterDelete,
		"GeneratePatches":              GeneratePatches,
		"ValidateTopology":             ValidateTopology,
		"DiscoverVariables":            DiscoverVariables,
	} {
		meta, err := all.Meta(runtimecatalog.GroupVersionHook{Group: GroupVersion.Group, Version: GroupVersion.Version, Hook: name})
		if err != nil {
			return fmt.Errorf("describing hook %s: %w", name, err)
		}
		meta.PayloadVersion = ""
		b.RegisterHook(hook, &meta)
	}
	return b.AddToCatalog(c)
}
