// Package machineset reconciles MachineSets: it creates and deletes Machines until there are spec.replicas of them.
//
// The steps, in order, and what each guarantees:
//
//	cluster    the Cluster exists
//	adopt      the MachineSet has the cluster name label and an owner, and the Cluster owns its templates
//	collect    the Machines of the MachineSet are listed, orphans that match are adopted
//	confirm    if the number of Machines has to change, the decision is based on the API server
//	retire     the names of deleted Machines are not reused
//	sync       labels, annotations and timeouts of the template are on the Machines, labels and
//	           annotations also on their objects
//	complete   the bootstrap config and infrastructure machine of every Machine exist
//	update     Machines that were moved here are written as the template demands, for an extension to update them in place
//	remediate  Machines that are marked for remediation are deleted, as many at a time as the MachineDeployment allows
//	scale      the Machines that confirm decided on are created, deleted, or handed over to the MachineSet of a new template
//
// When a MachineSet is deleted that has the finalizer:
//
//	left             the Machines that are left are listed
//	delete-machines  they are deleted, and gone
//	finish           the finalizer is removed
//
// Last:
//
//	status     counters and conditions reflect the Machines
//	problems   errors of individual Machines are returned
//
// An error with one Machine does not stop the work on the others.
//
// A Machine is created before the objects that it refers to, so that it is their controller from the start. Names of Machines
// derive from the MachineSet's UID, a generation and an ordinal: creating a Machine twice is a conflict, and a replacement has a
// new name.
package machineset
