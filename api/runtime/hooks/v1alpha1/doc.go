// Package v1alpha1 has the requests and responses of the runtime hooks, group hooks.runtime.cluster.x-k8s.io. They are the wire format
// between Cluster API and servers of runtime extensions. What they have of Clusters, Machines and ClusterClasses is in v1beta2.
//
// Hooks are functions whose arguments are pointers to the request and the response; they are never called, but identify the hook, for
// example in a catalog:
//
//	catalog := runtimecatalog.New()
//	if err := runtimehooksv1.AddToCatalog(catalog); err != nil { ... }
//
// What does not belong here: serving and calling extensions.
//
// +kubebuilder:object:generate=true
package v1alpha1
