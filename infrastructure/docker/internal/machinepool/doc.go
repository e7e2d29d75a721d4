// Package machinepool reconciles DockerMachinePools: groups of equal machines, each a container.
//
// A pool creates DockerMachines. The core provider creates a Machine for each of them, and from there on the controller of
// DockerMachines does the rest. Machines are removed by deleting their Machine, so that their Node is drained first.
//
// The steps, in order. Each can be interrupted at any point, and continues when it runs again:
//
//	owners   the MachinePool and its Cluster exist
//	claim    the finalizer is in the API server before there are machines to protect
//	prepare  a pool without machines waits for the cluster's infrastructure and for bootstrap data
//	scale    DockerMachines are created, and Machines deleted, as plan.go decides
//	remove   in deletion: all machines are deleted, and gone
//	status   always: provider IDs, instances, counters and conditions reflect the DockerMachines
//
// What to create and to delete is a pure function of the pool and its machines (plan.go). If that has to change anything according
// to the cache, it is decided again on what the API server has: a stale cache never leads to a machine too many or too few.
//
// A DockerMachine is never created twice: names derive from the pool's UID and an ordinal, which is not used again.
package machinepool
