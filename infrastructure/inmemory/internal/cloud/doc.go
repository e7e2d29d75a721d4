// Package cloud is the simulated cloud of the in-memory infrastructure provider: it keeps, per
// workload cluster, a resource group with everything that exists "in" that cluster.
//
// What belongs here: the object store with the semantics a Kubernetes API server promises
// (resource versions, conflicts, finalizers, owner references, namespaces, watches with a bounded
// history), the simulated machines, and the faults that can be injected. What does not: HTTP, kinds'
// schemas and validation (package apiserver), etcd's protocol (package etcd), and any knowledge of
// the management cluster.
//
// # Cost
//
// An object is kept as its encoded JSON plus a few words, so a read is a lookup and a list is a
// concatenation. A Group has no goroutine and no timer: whoever watches brings its own. A thousand
// idle groups cost their objects and nothing else.
//
// # Restarts
//
// Without a directory (Options.Directory) a group lives as long as the process. Everything that a
// controller puts there can be put again with the same identity: UID derives stable UIDs, and
// Startup derives stable delays. What is lost is what users made in the workload cluster, and how
// far each object's resource version had come; the latter starts again from the clock, so a watch
// from before the restart is told to list anew (410 Gone) and never sees time run backwards. With a
// directory nothing is lost, also when the process is killed: see journal.go.
package cloud
