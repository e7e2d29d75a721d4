// Package etcd is the simulated etcd of a workload cluster: enough of its gRPC API for control plane managers to list,
// remove, update and promote members, to detect when the cluster is at risk, and to back it up.
//
// This package implements membership, leadership, quorum and the gRPC services for them. Package apiserver handles
// connections, and passes on requests for a member. Data is in the store, and not available through etcd's key-value API,
// but in snapshots: package database writes etcd's database when a client requests one, and nothing is kept of it.
//
// # State
//
// Membership is stored with the other objects of the resource group, and as durable as they are (state.go). A member is
// added when etcd starts on a machine, by Found, Join or Restore, and only removed by MemberRemove. Deleting its machine
// or its Pod does not remove it: a member without a machine counts against the quorum like any other unresponsive one. A
// removed member never returns: its machine has the data directory of a removed member.
//
// Found creates an etcd cluster with its own ID. If the workload cluster already has one, that is a split brain, and
// visible as such: each member only lists the members of its own cluster.
//
// If all clusters have lost their quorum, Refound creates one with the objects of a data directory, or without objects: a real machine has
// another etcd on its disk than those that are lost. Its member has the identity and the peer URLs of that data directory.
//
// A cluster has a quorum as long as more than half of its members are on living machines. Without quorum, requests that
// need consensus time out, as with a real etcd.
//
// The Pods kube-system/etcd-<node> have annotations with the prefix etcd.inmemory.infrastructure.cluster.x-k8s.io/ that
// show the state to users and tools. Nothing reads them back.
package etcd
