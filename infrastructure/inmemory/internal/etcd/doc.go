// Package etcd is the simulated etcd of a workload cluster: enough of its gRPC API that a control plane
// manager can list, remove and promote members, and see when the cluster is in danger.
//
// What belongs here: membership, leadership, quorum and the gRPC services that show and change them. What
// does not: the connection (package apiserver hands over requests that arrived for a member) and the data,
// which is in the store and not offered by etcd's key-value API.
//
// # State
//
// Membership is state of its own, kept with the other objects of the resource group and as durable as they
// are (state.go). A member is added when etcd starts on a machine, by Found, Join or Restore, and leaves by
// MemberRemove alone. Deleting its machine, or its Pod, does not remove it: a member without a machine counts
// against the quorum like any other that does not answer. A removed member never comes back: its machine's
// data directory belongs to somebody who was expelled.
//
// Found begins an etcd cluster with an ID of its own. Doing that in a workload cluster that has one already
// is a split brain, and shows as one: each member lists the members of its own cluster only.
//
// A cluster has a quorum as long as more than half of its members are on machines that live. Without one,
// everything that needs agreement times out, as it does with a real etcd.
//
// The Pods kube-system/etcd-<node> have annotations with the prefix etcd.inmemory.infrastructure.cluster.x-k8s.io/
// that repeat the state for people and programs that look there. Nothing reads them back.
package etcd
