// Package cluster reconciles InMemoryClusters, and DevClusters with backend inMemory: each is a workload cluster in the simulated
// cloud with its own endpoint.
//
// The steps:
//
//	open   the workload cluster exists and listens at spec.controlPlaneEndpoint, also after a restart, and has the faults of
//	       the annotation
//	host   the API server of a hosted control plane is running, if the spec requests one
//	close  in deletion: the workload cluster is shut down
//
// Externally managed objects (annotation cluster.x-k8s.io/managed-by) are ignored.
package cluster
