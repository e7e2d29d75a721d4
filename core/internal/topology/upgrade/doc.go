// Package upgrade decides which part of a cluster gets which Kubernetes version next.
//
// The order is: the control plane first, then the MachineDeployments one after another in the order of the
// topology, and independently of them the MachinePools in theirs. Nothing new starts while an earlier part is
// still on its way. Compute is a pure function of what is wanted and what is there, so that a plan shown to a
// person and what the controller does cannot disagree.
//
// What does not belong here: reading objects, and everything about them but versions.
package upgrade
