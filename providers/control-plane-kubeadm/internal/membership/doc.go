// Package membership removes the etcd members of deleted Machines without losing the quorum of the others.
//
//	state.go         the Machines, and the observed workload cluster
//	remove.go        removes the member of a Machine, or returns what must happen first
//	preterminate.go  removes the members of Machines that are being deleted, and then our pre-terminate hook
//	orphaned.go      removes members without a Machine
//
// Members are queried immediately before one of them is removed, and enough healthy ones must remain (package quorum). The last
// member is not removed, and its Machine not deleted, until another one has joined. Which Machine is deleted is not decided
// here.
package membership
