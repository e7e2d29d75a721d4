// Package snapshot reads the objects that one reconcile of a control plane works with: the KubeadmControlPlane, its Cluster,
// its Machines, and the objects that the Machines were created from.
//
//	read.go           reads them
//	snapshot.go       the objects, and values that are computed from them alone
//	spec.go           the spec that Machines are compared with, and what they record of it
//	outdated.go       why a Machine differs from the spec and must be replaced: pure functions
//	kubeadmconfig.go  differences between its KubeadmConfig and kubeadmConfigSpec
//	live.go           checks the snapshot against the API server
//
// All of them come from the cache, which may be stale. Every Machine is created and deleted after a live check, and so is every
// etcd member removed that was found by elimination. At rest, nothing is read live.
//
// A Machine is outdated only because of fields that cannot be changed in place. Labels, annotations and timeouts can (package
// machines). Replacing a Machine is expensive, so missing information never counts as a difference, for example if another
// controller has created the Machine.
//
// Decisions do not belong here, only what they are based on. What is read from the workload cluster belongs in packages
// connection and health.
package snapshot
