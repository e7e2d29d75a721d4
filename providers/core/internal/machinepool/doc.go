// Package machinepool reconciles MachinePools: groups of machines that the infrastructure provider manages as a unit.
//
// The steps, in order, and what each guarantees:
//
//	cluster          the Cluster exists
//	adopt            the MachinePool has the cluster name label, the Cluster as owner and the finalizer in the API server
//	bootstrap        spec.template.spec.bootstrap.dataSecretName is that of the bootstrap config
//	infrastructure   provider IDs and replicas are those of the infrastructure object
//	list-machines    the infrastructure machines and the Machines of the pool are listed, if the provider has such machines
//	sync-machines    labels, annotations and timeouts of the template are on the Machines
//	create-machines  every infrastructure machine has a Machine of its name
//	delete-machines  Machines whose infrastructure machine is gone, or that are marked for remediation, are deleted
//	nodes            status.nodeRefs are the Nodes with these provider IDs; they are counted, annotated and untainted,
//	                 and Nodes that left the pool are deleted
//
// Every reconcile attempts all of bootstrap, infrastructure, Machines and nodes. Deletion:
//
//	delete-infrastructure  the infrastructure object is gone, and its machines with it
//	delete-bootstrap       the bootstrap config is gone
//	delete-all-machines    no Machine of the pool is left in the API server
//	delete-nodes           the Nodes of the pool are deleted
//	finish                 the finalizer is removed
//
// Last, whether or not the MachinePool is being deleted:
//
//	phase     status.phase is derived from the other fields
//	bounds    values copied from providers have a limited size
//	problems  errors of individual Machines are returned
//
// The provider decides how many machines there are: this controller creates a Machine for each infrastructure machine, and deletes
// only Machines that have none. The machines themselves, and the drain of their Nodes, belong to the Machine controller.
//
// Machines are created and deleted, and Nodes deleted, after reads from the API server, because a stale cache may lack the latest
// machines. Workload clusters and provider objects are not trusted: a Node belongs to the pool only if no Machine or MachinePool had
// its provider ID before, and the size of copied values is limited.
package machinepool
