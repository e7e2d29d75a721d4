// Package scale changes the number of Machines: it initializes the cluster, scales up and down, and rolls out.
//
//	plan.go       the step plan: the next action, and the conditions about it
//	next.go       Next, a pure function from the current state and the spec to one action
//	preflight.go  the named checks that must pass before the number of Machines changes
//	etcd.go       whether the etcd of a new Machine can join the members that run
//	selection.go  which Machine is deleted, and the failure domain of a new one
//	inplace.go    updates Machines in place instead of replacing them
//	scale.go      the step scale: takes the action, if its preflight checks pass and the cache is not stale
//
// There is one action at a time, and never two deletions at once, so that etcd keeps its quorum. Whether a Machine is outdated
// or unhealthy is not decided here: it is part of the input. Creating and deleting Machines belongs in package machines.
package scale
