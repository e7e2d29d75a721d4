// Package etcd is a client of the etcd members of a workload cluster.
//
// There is one connection to the member on each Node. It is established on demand and kept while it is in use, so that another
// call costs one round trip. After a call that could not reach its member or has timed out, the connection is closed: nothing
// reconnects in the background to an unreachable member.
//
// Connecting to Pods belongs in package portforward, and deciding which member can be removed in packages membership and
// workload.
package etcd
