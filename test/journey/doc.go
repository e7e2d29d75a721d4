// Package journey walks whole clusters through their lives, as their users do: over a real API server, with every
// component of the product in it, on the templates that users get.
//
// The management cluster is the standalone program with the providers that `clusterctl init` installs. The journeys of
// one test binary share it, each in a namespace of its own (a World); only the journey that kills the management
// cluster has one for itself. A Cluster under test is a Subject. What may be said about it:
//
//	w := shared.World(t)
//	w.Applied(objects...)                         they are written
//	c := w.Subject(cluster)                       the Cluster is written, and now under test
//	c.Eventually("why", Ready, Workers(3))        all of that becomes true at the same moment
//	still := c.Always("why", AvailableWorkers(3)) that is true at every moment until still()
//	c.Gone()                                      it is deleted, and nothing of it is left anywhere
//
// A Condition looks at a Picture: everything the management cluster has on record about the Cluster. Subject.Agrees
// also asks the workload cluster: its Nodes, its etcd members. Pictures are made of watches, so nothing is polled but
// the workload cluster, and Always sees every state that there ever was.
//
// World.Foreign adds a provider that knows nothing of this project but the contract, for journeys of Clusters whose
// infrastructure, bootstrap data and control plane are somebody else's.
//
// What belongs here: journeys across components, and the words they are told in. What does not: the behaviour of one
// component, which is tested where it lives.
package journey
