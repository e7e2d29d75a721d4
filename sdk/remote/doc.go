// Package remote connects a manager to its workload clusters: one connection and one cache per cluster and process, shared by all
// controllers.
//
// Clusters.Get never blocks: it returns a connected Cluster, or ErrNotConnected while the connection is established in the background.
// Every controller with a Source gets an event when a cluster is connected or disconnected. So an unresponsive cluster does not affect
// others, and controllers do not poll. There are no health probes either: a broken connection is detected by HTTP/2 pings, by its
// watches, and by the absence of the bookmarks that API servers send every minute. A connection ends permanently when its kubeconfig
// Secret is deleted: there is no connection to a Cluster that was deleted, or moved to another management cluster.
//
// The manager declares what is cached of workload clusters, and which fields. One reflector per kind updates a store, which calls the
// controllers' listeners synchronously: without queues and buffers, because there may be a thousand small clusters.
//
// Neither kubeconfigs nor workload API servers are trusted. A Policy restricts what a kubeconfig may use, addresses are checked when
// they are dialed, redirects are rejected, everything that is read has a limit, and a panic only ends one connection. If the policy or a
// limit was violated, IsRejected reports true for the error.
//
// A management cluster can manage itself: the connection then has the address of the manager's own one (selfhosted.go).
//
// What does not belong here: what controllers do in workload clusters, and the creation of kubeconfig Secrets.
package remote
