// Package member connects to the etcd members of a Cluster's control plane, and to its API server, for one task: without an agent. It
// chooses which member to read a snapshot from.
//
// Any kubeadm control plane with its etcd on its Machines is supported, whatever provider manages it. What is done with a snapshot, and
// what a restore changes, belongs to the controllers.
package member
