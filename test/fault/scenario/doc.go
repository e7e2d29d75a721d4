// Package scenario is the vocabulary that runs are told in: a Scenario brings a Cluster to a start, does something to it,
// and says what it has to become and what has to hold all the time.
//
//	Scenario{
//		Name:   "scale-down",
//		Before: &Size{ControlPlanes: 3, Workers: 5},
//		Change: []Change{Resize(Size{ControlPlanes: 1, Workers: 2})},
//		...
//	}
//
// What belongs here: what users do, and what they may expect. What does not: what goes wrong meanwhile (package script),
// and looking (package invariant).
package scenario
