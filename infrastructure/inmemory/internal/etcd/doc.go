// Package etcd is the simulated etcd of a workload cluster: enough of its gRPC API that a control plane
// manager can list, remove and promote members, and see when the cluster is in danger.
//
// What belongs here: membership, leadership, quorum and the gRPC services that show and change them. What
// does not: the connection (package apiserver hands over requests that arrived for a member) and the data,
// which is in the store and not offered by etcd's key-value API.
//
// # State
//
// A member is a Pod kube-system/etcd-<node>; what etcd knows of it is in annotations of that Pod with the
// prefix etcd.inmemory.infrastructure.cluster.x-k8s.io/. Identities are derived from UIDs, so a Pod that is
// made again after a restart is the same member. A removed member stays removed as long as its Pod exists,
// and refuses every call.
//
// The cluster has a quorum as long as more than half of its members are on machines that live. Without one,
// everything that needs agreement times out, as it does with a real etcd.
package etcd
