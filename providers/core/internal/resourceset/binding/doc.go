// Package binding applies the manifests of ClusterResourceSets to workload clusters. It reconciles Clusters, and maintains their
// ClusterResourceSetBinding, which has the name of the Cluster and records what was applied.
//
// The steps, in order, and what each guarantees:
//
//	adopt    an existing binding has its Cluster's name and the ClusterResourceSets as owners, not the Cluster
//	choose   the ConfigMaps and Secrets to apply are known; if there are none, the reconcile ends without a request
//	connect  the workload cluster is connected, and its API server has completed its start
//	claim    the binding has an entry for each ClusterResourceSet, none of which is being deleted
//	apply    the manifests are applied
//	record   the binding has the results
//
// Deletion:
//
//	release  the binding is deleted
//
// Because it reconciles Clusters, one workload cluster that does not respond does not delay the others, and each binding has one writer,
// regardless of the number of ClusterResourceSets. The exception is the controller of ClusterResourceSets, which removes the entry of one
// that is deleted. All writes of existing bindings require the version that was read.
//
// The entry is in the API server before anything is applied, and the ClusterResourceSet is read from there afterwards: either its
// deletion finds the entry, or the deletion is found here. So nothing is recorded for a ClusterResourceSet that no longer exists, which
// another one of its name would take for its own.
//
// Everything is repeatable: manifests that were applied without being recorded, because the process was killed, are applied again, which
// changes nothing. With a complete binding, there are no requests.
//
// The condition of ClusterResourceSets, and their deletion, do not belong here.
package binding
