// Package cluster reconciles InMemoryClusters: each is a workload cluster in the simulated cloud with an endpoint of its own.
//
// The steps:
//
//	open   the workload cluster exists and listens where spec.controlPlaneEndpoint says, also after a restart, and has the
//	       faults that an annotation asks for
//	close  in deletion: the workload cluster is gone
//
// An InMemoryCluster that something else manages (annotation cluster.x-k8s.io/managed-by) is left alone.
package cluster
