// Package snapshot reads the objects that one reconcile of a control plane works with: the KubeadmControlPlane, its Cluster,
// its Machines, and the objects that the Machines were created from.
//
//	read.go      reads them
//	snapshot.go  the objects, and values that are computed from them alone
//
// All of them come from the cache, which may be stale: package live checks them against the API server before a decision that
// cannot be undone. What is read from the workload cluster belongs in packages connection and health.
package snapshot
