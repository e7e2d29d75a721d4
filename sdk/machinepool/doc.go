// Package machinepool is the controller of infrastructure machine pools whose machines are objects of their own: groups of identical
// machines behind a MachinePool. A provider declares its kinds as data (Provider), and adds them to its manager with Setup.
//
// A pool creates infrastructure machines. The core provider creates a Machine for each of them, and the provider's controller of
// infrastructure machines reconciles them as it does those of other Machines. An infrastructure machine is removed by deleting its
// Machine, so that the Node is drained first.
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
// A pure function of the pool and its machines decides what to create and to delete (plan.go). If the cache suggests a change, the
// decision is repeated with live objects: a stale cache never leads to an extra or a missing machine.
//
// A change of a MachinePool may involve several objects, which are written one after another: with revisions (revision.go), machines
// are replaced once all of them are written, and only once.
//
// An infrastructure machine is never created twice: names derive from the pool's UID and an ordinal, which is not reused.
//
// What does not belong here: how a machine is created, and pools whose machines are not objects.
package machinepool
