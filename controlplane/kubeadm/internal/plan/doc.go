// Package plan decides what a control plane does next: a pure function from what is there and what is wanted to one
// action. Nothing here reads or writes; the same function serves controllers, tests and dry runs.
//
//	plan.go       Next: initialise, scale up, scale down, wait, or nothing
//	preflight.go  the named checks that must pass before the number of Machines changes
//	selection.go  which Machine goes, and where a new one is placed
//
// One action at a time, and never two deletions at once: that is what keeps a quorum of etcd. What makes a Machine
// outdated or unhealthy does not belong here; it comes in as a fact.
package plan
