// Package drain takes the Pods off a Node before its machine is deleted.
//
// MachineDrainRules, and a label of the Pod, decide what happens to each Pod: it is evicted when all Pods with a lower order are gone, left
// on the Node, or waited for until it has completed. Without any, a Node is drained as by "kubectl drain".
//
//	rules.go    which rules apply to a Machine, and what they say about a Pod
//	plan.go     what happens to all Pods of a Node in one attempt; no requests
//	evict.go    the requests of an attempt
//	volumes.go  which volumes have to be detached from the Node afterwards
//	left.go     which Pods are left after it, and how that is reported
package drain
