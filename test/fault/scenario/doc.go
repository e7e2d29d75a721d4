// Package scenario defines the operations on Clusters that are tested with faults: a Scenario creates a Cluster, changes it,
// and has the expected result and the limits that hold at any time.
//
//	Scenario{
//		Name:   "scale-down",
//		Before: &Size{ControlPlanes: 3, Workers: 5},
//		Change: []Change{Resize(Size{ControlPlanes: 1, Workers: 2})},
//		...
//	}
//
// What belongs here: operations of users, and what users may expect. What does not: faults (package script), and checks
// (package invariant).
package scenario
