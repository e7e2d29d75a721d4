// Package store stores the objects of a simulated workload cluster, with the semantics of a Kubernetes API server: resource versions,
// conflicts, finalizers, owner references, namespaces, and watches with a bounded history.
//
// It knows Pods and Nodes as far as Kubernetes' garbage collector does, and no other kinds. What machines are, and which have power, is
// not decided here.
//
// From the top: Watcher and the access by Go types are on top of Store, which locks; it has a state, which records changes in history and
// journal; and that has a table with the current objects. Garbage collection runs synchronously in the write that triggers it, with the
// lock held, and nothing runs in the background.
package store
