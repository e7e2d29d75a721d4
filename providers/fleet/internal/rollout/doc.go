// Package rollout reconciles ClusterRollouts: it changes many Clusters in stages, a few at the same time, and halts when they fail.
//
// The steps, in order, and what each guarantees:
//
//	identify  the rollout has an ID, to which entries of Clusters refer; one that has ended does nothing
//	resolve   the strategy is known and valid, and which Clusters are selected or have an entry
//	current   the cache is not older than what an earlier process has written
//	plan      every selected Cluster has an entry with its stage and what the change does to it, and the hash of all is recorded; until then,
//	          no Cluster is changed
//	confirm   of Clusters that report that their change is complete, the API server has shown that it is
//	decide    what is done next, by package wave
//	mark      what has become of Clusters is in their entries
//	start     Clusters are changed, or set back, as the API server's current rollout permits; the change and the entry are one write
//	record    the numbers are in the status
//
// All that a rollout knows of a Cluster is in an annotation of the Cluster (fleetv1.RolloutEntry): the status could be lost, and nothing
// would be changed twice.
//
// What a change does to a Cluster is known in package rolloutplan.
package rollout
