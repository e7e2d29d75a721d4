// Package topologyplan predicts what the topology controller does after objects have been applied: to ClusterClasses, templates and
// Clusters. It writes nothing; requests that validate are dry runs.
//
//	world.go     the objects: those of a management cluster, if there is one, under those of the input and of the prediction
//	kinds.go     CustomResourceDefinitions of the kinds in the input, if there is no management cluster
//	input.go     adds the input to the world, defaulted and validated like at admission
//	affected.go  which ClusterClasses and Clusters the input affects
//	predict.go   rounds: plan, carry the plan out in the world, complete the rollouts that it starts, until nothing changes
//	extensions.go  patches of runtime extensions, and which hooks have extensions
//	rollout.go   which Machines a round replaces, and why
//	pools.go     the same for MachinePools, as far as it is known
//	held.go      what holds a rollout until a user acts
//	plan.go      the result
//	series.go    plans updates of many Clusters; shared.go reads what these have in common once
//	errors.go    why there is no plan
//
// It uses the planner of the topology controller, the rules of its webhooks, and the comparisons of the controllers that replace
// Machines, so that it cannot differ from them. What does not belong here: files, tables, connections to clusters.
package topologyplan
