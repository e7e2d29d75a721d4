// Package journey tests the lifecycle of whole clusters as users see it: with a real API server, all components of the
// product, and the released templates.
//
// The management cluster is the standalone program with the providers that `clusterctl init` installs. The journeys of
// one test binary share it, each with its own namespace (a World); only the journey that kills the management cluster has its
// own. A Cluster under test is a Subject. The vocabulary:
//
//	w := shared.World(t)
//	w.Applied(objects...)                         creates or updates objects
//	c := w.Subject(cluster)                       creates the Cluster under test
//	c.Eventually("why", Ready, Workers(3))        waits until all conditions are true at the same time
//	still := c.Always("why", AvailableWorkers(3)) checks that the condition is true until still()
//	c.Gone()                                      deletes the Cluster and checks that nothing is left
//
// A Condition checks a Snapshot: the Cluster's objects in the management cluster. Subject.WorkloadMatches also checks the
// workload cluster: its Nodes and etcd members. Snapshots come from watches, so only the workload cluster is polled, and
// Always checks every state.
//
// World.ThirdPartyProvider installs a provider that depends only on the contract, for Clusters whose infrastructure,
// bootstrap data and control plane do not come from this project.
//
// Repository.ReleasePublished releases components in the form of Cluster API v1.7, for journeys that upgrade from it. They need
// the published CRDs, which are not in this repository.
//
// Providers has the releases of other projects' infrastructure providers, which it reads in place; they are not in this repository either.
// Package e2e uses it for a management cluster with Nodes.
//
// What belongs here: journeys across components, and their vocabulary. What does not: tests of one component, which are in
// its packages.
package journey
