// Package cloud is the simulated cloud of the in-memory infrastructure provider: it has a resource group per workload
// cluster, with everything that exists in that cluster.
//
// A Group combines what the packages below implement, which do not know each other except that machines are stored: store, the
// objects with the semantics of a Kubernetes API server; faults, those of requests; and machines, what they are, and what their Nodes
// and Pods look like without power. HTTP, schemas and validation are in package apiserver, and etcd's protocol is in package etcd.
// Nothing here knows about the management cluster.
//
// # Cost
//
// An object is stored as encoded JSON, so a read is a lookup and a list is a concatenation. A Group has no goroutines and
// no timers: watchers have their own. A thousand idle groups only cost the memory of their objects.
//
// # Restarts
//
// Without a directory (Options.Directory) a group lives as long as the process. Controllers can recreate their objects
// with the same identity: UID derives stable UIDs, and machines.Startup derives stable delays. Objects that users created in the
// workload cluster are lost, and so are resource versions; these restart from the clock, so a watch from before the
// restart has to list again (410 Gone) and never goes back in time. With a directory nothing is lost, even if the process
// is killed: see store/journal.go.
package cloud
