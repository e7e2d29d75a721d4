// Package machineset reconciles MachineSets: it keeps as many Machines as a MachineSet asks for, made from
// its template.
//
// The steps, in order, and what each guarantees:
//
//	cluster    the Cluster exists
//	adopt      the MachineSet has its label and an owner; its templates belong to the Cluster
//	collect    the Machines of the MachineSet are known, orphans that match are adopted
//	confirm    if the number of Machines has to change, how is decided on what the API server has
//	retire     the names of Machines that leave are not used again
//	sync       labels, annotations and timeouts of the template are on the Machines and their objects
//	complete   every Machine has the bootstrap config and infrastructure machine that it refers to
//	remediate  Machines whose remediation was asked for are deleted
//	scale      the Machines that confirm decided on are made or deleted
//	status     counters and conditions say what is there
//	problems   errors of single Machines are reported
//
// Trouble with one Machine is reported, and does not keep the others from being taken care of.
//
// A Machine is created before the objects that it refers to, which then have it as controller from the
// start. Names derive from the MachineSet's UID, a generation of names and an ordinal: creating a Machine twice collides,
// and a replacement has another name.
package machineset
