// Package membership removes the etcd members of deleted Machines without losing the quorum of the others.
//
//	hook.go             our pre-terminate hook, which holds Machines until their members are removed
//	state.go            the Machines, and the observed workload cluster
//	remove.go           removes the member of a Machine, or returns what must happen first
//	unheld.go           checks that the cache does not lack an operation that holds the control plane
//	preterminate.go     the step pre-terminate: removes the members of Machines that are being deleted, and then our hook
//	orphanedmembers.go  the step orphaned-members: removes members without a Machine
//
// Every Machine that we create and that runs an etcd member has the hook from its creation on: its infrastructure is not deleted before
// its member has been removed from etcd, even if a user deletes the Machine while this manager is down. Others get it with another change,
// or when their deletion begins (ADR 0012).
//
// Members are queried immediately before one of them is removed, and enough healthy ones must remain (package quorum). The last
// member is not removed, and its Machine not deleted, until another one has joined. Which Machine is deleted is not decided
// here.
package membership
