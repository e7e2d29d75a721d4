// Package rollout computes the replicas of each MachineSet of a MachineDeployment.
//
// It is pure arithmetic on observed state: one call computes one move of a rollout, and later calls compute the next moves as
// Machines become available and are deleted. Finding the MachineSet of the current template and writing the MachineSets belong
// to the controller.
package rollout
