// Package machinedeployment reconciles MachineDeployments: it keeps one MachineSet per template and moves
// machines from the MachineSets of former templates to the current one.
//
// The steps, in order, and what each guarantees:
//
//	check      the Cluster exists, and admission has seen the MachineDeployment
//	adopt      the MachineDeployment has its label and the Cluster as owner
//	collect    the MachineSets are known, with orphans that the selector matches
//	choose     the MachineSet of the current template is found, or named if it has to be made
//	plan       every MachineSet has a number of replicas, by strategy; package rollout decides
//	confirm    what the plan was made of is what the API server has
//	write      the MachineSets are what the MachineDeployment says, with one write each at most
//	clean      old empty MachineSets beyond the history limit are deleted
//	status     counters, phase and conditions say what is there
//
// What of a template can change without replacing Machines (labels, annotations, timeouts) is written to
// MachineSets in place and never leads to another MachineSet.
package machinedeployment
