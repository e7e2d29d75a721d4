// Package v1alpha1 has the requests and responses of the runtime hooks of v1.7, group hooks.runtime.cluster.x-k8s.io, under the import path
// of v1.7. What they have of Clusters and ClusterClasses is in v1beta1; extensions that use this package are called with that, and need
// no change. New extensions use api/runtime/hooks/v1alpha1, which has all hooks, with v1beta2, and most types of this package.
//
// Hooks are functions whose arguments are pointers to the request and the response; they are never called, but identify the hook, for
// example in a catalog:
//
//	catalog := runtimecatalog.New()
//	if err := runtimehooksv1.AddToCatalog(catalog); err != nil { ... }
//
// What does not belong here: hooks that v1.7 does not have; serving and calling extensions.
//
// +kubebuilder:object:generate=true
package v1alpha1
