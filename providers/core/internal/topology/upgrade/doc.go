// Package upgrade decides which Kubernetes version each part of a cluster gets next.
//
// The control plane is upgraded first, then the MachineDeployments, one after another in the order of the topology, and
// independently of them the MachinePools in their order. No upgrade starts while an earlier part is still upgrading. Compute is
// a pure function, so a dry run shows exactly what the controller would do.
//
// What does not belong here: reading objects, and everything about them but versions.
package upgrade
