// Package cloud is the simulated cloud of the in-memory infrastructure provider: it has a resource group per workload
// cluster, with everything that exists in that cluster.
//
// It implements the object store with the semantics of a Kubernetes API server (resource versions, conflicts, finalizers,
// owner references, namespaces, watches with a bounded history), simulated machines, and fault injection. It does not
// implement HTTP, schemas and validation (package apiserver) or etcd's protocol (package etcd), and knows nothing about
// the management cluster.
//
// # Cost
//
// An object is stored as encoded JSON, so a read is a lookup and a list is a concatenation. A Group has no goroutines and
// no timers: watchers have their own. A thousand idle groups only cost the memory of their objects.
//
// # Restarts
//
// Without a directory (Options.Directory) a group lives as long as the process. Controllers can recreate their objects
// with the same identity: UID derives stable UIDs, and Startup derives stable delays. Objects that users created in the
// workload cluster are lost, and so are resource versions; these restart from the clock, so a watch from before the
// restart has to list again (410 Gone) and never goes back in time. With a directory nothing is lost, even if the process
// is killed: see journal.go.
package cloud
