// Package catalog registers the runtime hooks of Cluster API, like a runtime.Scheme registers kinds: by the Go function that identifies a
// hook, and by group, version and name.
//
//	catalog := runtimecatalog.New()
//	if err := runtimehooksv1.AddToCatalog(catalog); err != nil { ... }
//	hook, err := catalog.GroupVersionHook(runtimehooksv1.BeforeClusterCreate)
//
// What does not belong here: the hooks themselves (api/runtime/hooks), serving and calling extensions.
package catalog
