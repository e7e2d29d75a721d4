// Package remote connects a manager to its workload clusters: one connection and one cache per cluster and
// process, shared by all of its controllers.
//
// Asking for a cluster never blocks: Clusters.Get returns a connected Cluster, or ErrNotConnected while the
// connection is being made in the background. When it stands, and whenever it is lost, every controller that
// registered a Source gets an event for the Cluster object. So a cluster that hangs costs the others nothing,
// and nobody polls. There are no health probes either: a dead connection is noticed by HTTP/2 pings, by the watches
// that run over it, and by their silence, because API servers send bookmarks every minute. It ends for good when its kubeconfig
// Secret is gone: nothing connects to a Cluster that was deleted, or moved to another management cluster.
//
// What is cached of a workload cluster is declared by the manager, and stripped to the fields that are read. One reflector
// per kind feeds a store, which calls the controllers' listeners as it makes a change: there is no queue and no buffer
// between them, because there may be a thousand small clusters.
//
// Neither a kubeconfig nor what answers at its server is trusted. A Policy says what a kubeconfig may use, addresses are
// checked when they are dialled, redirects are refused, everything that is read has a limit, and a panic ends one
// connection. What was refused is an error for which IsRefused holds.
//
// What does not belong here: what is done in a workload cluster, and who makes kubeconfig Secrets.
package remote
