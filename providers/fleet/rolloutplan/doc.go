// Package rolloutplan knows what a ClusterRollout does to Clusters, without doing it:
//
//	change.go   what a change sets in a Cluster, whether a Cluster has it, and how it goes back
//	assign.go   which Clusters are selected, and in which stage each is
//	effect.go   what the change does to a Cluster, by the planner of the topology controller
//	owner.go    who else applies the fields of the change
//	summary.go  the plan of the rollout, from what the change does to each Cluster
//	hash.go     its hash, which approvals refer to
//
// The controller of ClusterRollouts and `clusterctl rollout plan` use the same functions, so that they cannot differ. When a Cluster is
// changed, and how a rollout reacts to failures, does not belong here.
package rolloutplan
