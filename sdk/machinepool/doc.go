// Package machinepool is the controller of infrastructure machine pools whose machines are objects of their own: groups of equal
// machines behind a MachinePool. A provider declares its kinds as data (Provider), and adds them to its manager with Setup.
//
// A pool creates infrastructure machines. The core provider creates a Machine for each of them, and from there on the provider's
// controller of infrastructure machines does the rest. Machines are removed by deleting their Machine, so that their Node is drained
// first.
//
// The steps, in order. Each can be interrupted at any point, and continues when it runs again:
//
//	owners   the MachinePool and its Cluster exist
//	claim    the finalizer is in the API server before there are machines to protect
//	prepare  a pool without machines waits for the cluster's infrastructure and for bootstrap data
//	external spec.replicas of the MachinePool is the number that the infrastructure decides on, if that manages it
//	scale    infrastructure machines are created, and Machines deleted, as plan.go decides
//	remove   in deletion: all machines are deleted, and gone
//	status   always: provider IDs, counters and conditions reflect the machines
//
// What to create and to delete is a pure function of the pool and its machines (plan.go). If that has to change anything according
// to the cache, it is decided again on what the API server has: a stale cache never leads to a machine too many or too few.
//
// A change of a MachinePool may be one of several objects, which are written one after another: with revisions (revision.go), machines are
// replaced when all of them are there, and only once.
//
// An infrastructure machine is never created twice: names derive from the pool's UID and an ordinal, which is not used again.
//
// What does not belong here: how a machine is made, and pools whose machines are not objects.
package machinepool
