// Package machinedeployment reconciles MachineDeployments: it keeps one MachineSet per template and moves replicas from the
// MachineSets of previous templates to that of the current template.
//
// The steps, in order, and what each guarantees:
//
//	check      the Cluster exists, and the webhook has defaulted the MachineDeployment
//	adopt      the MachineDeployment has the cluster name label and the Cluster as owner
//	collect    the MachineSets are listed, including orphans that the selector matches
//	choose     the MachineSet of the current template is found, or its name is determined
//	ask        if Machines can be updated in place instead of being replaced, an extension has said so
//	plan       the strategy determines the replicas of every MachineSet, see package rollout
//	confirm    if something has to be written, the plan is based on the API server, not on the cache
//	write      the MachineSets are as planned, with at most one write each
//	clean      old MachineSets without replicas beyond the history limit are deleted
//
// When a MachineDeployment is deleted that has the finalizer:
//
//	left         the MachineSets that are left are listed
//	delete-sets  they are deleted, and gone with their Machines
//	finish       the finalizer is removed
//
// Last:
//
//	status     counters, phase and conditions reflect the MachineSets and Machines
//
// Fields of the template that can change without replacing Machines (labels, annotations, timeouts) are updated in place and
// never lead to a new MachineSet.
package machinedeployment
