// Package member connects to the etcd members of a Cluster's control plane, for one task: through the API server of the workload cluster,
// without an agent. It chooses which member to read a snapshot from.
//
// Any kubeadm control plane with its etcd on its Machines is supported, whatever provider manages it. Nothing is changed here; what is done
// with a snapshot belongs to the controllers.
package member
