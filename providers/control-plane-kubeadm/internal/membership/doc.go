// Package membership removes the etcd members of deleted Machines without losing the quorum of the others.
//
//	hook.go             our pre-terminate hook, which holds Machines until their members are removed
//	state.go            the Machines, and the observed workload cluster
//	remove.go           removes the member of a Machine, or returns what must happen first
//	join.go             makes sure that the machine of a Machine without a member gets none
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
//
// kubeadm may be running on the machine of a Machine that has no member yet, and may join etcd after our hook was removed, and before the
// infrastructure is gone. With few members, that one would be needed for the quorum. kubeadm uses its bootstrap token first, to read
// the configuration of the cluster; then it pulls images, and joins etcd with certificates that it has issued itself. So the token
// is revoked, and the Machine is held for another while in which a member that joins nevertheless is seen, and removed while it still runs
// (join.go). That is only for Machines without a Pod of etcd, which kubeadm starts after it has added the member, and only if etcd
// would have no quorum with one more member that does not run: with three healthy members, nothing is waited for. The bootstrap
// provider does not create the token again for a Machine that is being deleted.
package membership
