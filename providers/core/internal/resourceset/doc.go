// Package resourceset reconciles ClusterResourceSets: manifests in ConfigMaps and Secrets that are applied to all workload clusters that
// a selector selects.
//
// The steps, in order, and what each guarantees:
//
//	adopt      the finalizer is in the API server before anything is applied
//	resources  the ConfigMaps and Secrets in the spec, and no others, have the ClusterResourceSet as owner; those that are missing or of
//	           a wrong type are known
//	clusters   the selected Clusters and their bindings are known; bindings of Clusters that no longer exist are deleted
//	report     the condition states what could not be applied
//
// Deletion:
//
//	unbind   no binding in the API server has an entry of the ClusterResourceSet
//	release  the finalizer is removed
//
// Applying, and everything else that requires a workload cluster, is the work of package binding, which reconciles Clusters; the results
// are in the bindings, and the reasons of failures in package outcome. What was applied to workload clusters stays there when a Cluster
// is no longer selected, or the ClusterResourceSet is deleted.
//
// ConfigMaps and Secrets are only read in the namespace of the ClusterResourceSet.
package resourceset
