// Package clusterrollout plans, shows and steers ClusterRollouts, for `clusterctl rollout`:
//
//	read.go    what commands read: the rollout, its strategy, its Clusters
//	plan.go    what a rollout would do, planned from here
//	show.go    a plan for people
//	status.go  how far a rollout is, from the rollout and the entries of its Clusters
//	report.go  a status for people
//	next.go    what users can do next
//	change.go  approvals, aborts and retries
//	notice.go  what users of a Cluster should know about the rollout that it takes part in
//
// Changes are one patch of one object each. They only apply to the version that they were decided on: if another client changes the object
// in between, it is read and decided again. What the change does to a Cluster is in package rolloutplan, and is the same as in the
// controller. Flags and arguments do not belong here.
package clusterrollout
