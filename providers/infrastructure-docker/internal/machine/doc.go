// Package machine reconciles DockerMachines, and DevMachines with backend docker: each is a container that kubeadm makes a Node of its
// workload cluster.
//
// The steps, in order. Each can be interrupted at any point, and continues when it runs again:
//
//	owners        the Machine and its Cluster exist
//	prepare       waits for the cluster's infrastructure and for bootstrap data
//	claim         finalizer and identity are in the API server, before there is a container to protect and to recognize
//	etcd-command  what a ControlPlaneRecovery asks of the etcd member in the container is done and answered
//	container     the container exists and runs; its addresses are in the status
//	preload       the images of preLoadImages are in the container
//	load-balancer control plane: waits until the load balancer forwards to the container
//	bootstrap     the bootstrap data has run in the container; see package bootstrap
//	node          the Node has its provider ID, and no taint of a missing cloud provider; the machine is ready
//	remove        in deletion: the container and its volumes are removed
//
// Nothing is polled: container events, and those of Nodes, Machines and Clusters trigger reconciles. What takes longer (pulling
// and loading images, running the bootstrap data) is a job in the background; see package job.
//
// A container is created at most once: it has a derived name, and is only created if the object is up to date and shows that it
// had none before. A container that another client removes after it was bootstrapped is reported, and not created again: its Node
// and its etcd member cannot be recreated in the same place. Other containers are never used or removed; see package identity.
// Before a container is created or removed, the object and its Cluster are read from the API server: one that is paused is left alone.
package machine
