// Package etcd talks to the etcd members of a workload cluster.
//
// There is one connection to the member on each Node. It is made when it is first used and kept while it is in
// use, so that asking again costs a round trip. A call that cannot reach its member, or that takes too long, ends the connection: nothing goes on
// in the background for a member that is away, and the next call starts afresh.
//
// What does not belong here: how Pods are reached (package portforward), and which member may be removed when (packages
// controlplane and workload).
package etcd
