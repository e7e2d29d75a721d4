// Package machine reconciles InMemoryMachines, and DevMachines with backend inMemory: each is a simulated machine with a Node in its
// workload cluster, and possibly a control plane.
//
// The steps, in order. Each takes as long as the object specifies, and is idempotent, so that the workload cluster is
// the same after a restart:
//
//	owners     the Machine and its Cluster exist
//	prepare    waits for the cluster's infrastructure and for bootstrap data
//	command    what a ControlPlaneRecovery asks of its etcd member is done and answered
//	vm         the machine is running; it has a provider ID and is ready
//	node       its Node exists, if kubeadm would have succeeded
//	etcd       control plane: the etcd member is running, unless etcd is external
//	api-server control plane: the API server, scheduler and controller manager are running
//	addons     control plane: the objects that kubeadm and the API server create exist
//	remove     in deletion: the simulated machine is deleted
//
// Bootstrap data is read once, when the machine is created, and stored with it. Package bootstrap decides whether kubeadm would succeed.
// Data that restores a backup of etcd, and kubeadm init while etcd is lost, change all objects of the cluster before the Node is created
// (restore.go). If kubeadm or a download fails, the machine retries for minutes; after that, it has no Node or etcd until it is deleted.
package machine
