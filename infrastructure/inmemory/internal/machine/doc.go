// Package machine reconciles InMemoryMachines: each is a simulated machine that becomes a Node of its
// workload cluster, with a control plane on it if it is to have one.
//
// The steps, in order; each takes as long as spec.behaviour says, and each finds what it made before, so
// that after a restart the workload cluster is what it was:
//
//	owners     the Machine and its Cluster are known
//	prepare    waits for the cluster's infrastructure and for bootstrap data
//	vm         the machine runs; it has a provider ID and is ready
//	node       its Node is there, if kubeadm would have succeeded
//	etcd       control plane: the etcd member runs
//	api-server control plane: the API server listens, scheduler and controller manager run
//	addons     control plane: what kubeadm puts into a new cluster is there
//	remove     in deletion: the simulated machine is gone
//
// Bootstrap data is read once, when the machine is made, and stays with it. What kubeadm would make of it, package
// bootstrap decides; a machine that kubeadm fails on tries again for minutes, and then stays without a Node, or without
// etcd, until it is deleted.
package machine
