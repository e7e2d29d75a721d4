// Package scale changes the number of Machines: it initializes the cluster, scales up and down, and rolls out.
//
//	plan.go   determines the next action, and the conditions about it
//	scale.go  takes the action, if its preflight checks pass and the cache is not stale
//
// The decision is a pure function in package plan. Creating and deleting Machines belongs in package machines.
package scale
