// Package deletion deletes the Machines of a control plane that is being deleted, after all workers, and then removes its
// finalizer.
//
//	workers.go   counts the workers of the Cluster: draining their Nodes requires the API server
//	machines.go  deletes all Machines at once: etcd needs no quorum any more
//	release.go   removes the finalizer
//
// Before the first Machine is deleted, and before the finalizer is removed, that is checked against the API server. While there
// are workers, Machines that users delete are handled as usual (package membership).
package deletion
