// Package plan decides what a control plane does next, with a pure function from the current state and the spec to one action.
//
//	plan.go       Next: initialize, scale up, scale down, or nothing
//	preflight.go  the named checks that must pass before the number of Machines changes
//	selection.go  which Machine is deleted, and the failure domain of a new one
//
// There is one action at a time, and never two deletions at once, so that etcd keeps its quorum. Whether a Machine is outdated
// or unhealthy is not decided here: it is part of the input.
package plan
