// Package lifecycle decides which lifecycle hooks of runtime extensions are due for a Cluster, and records which are still to be called.
//
//	BeforeClusterCreate            before the first object is created; holds all of them
//	AfterControlPlaneInitialized   once; the creation makes it pending
//	BeforeClusterUpgrade           before an upgrade; holds it. Annotations of the Cluster do the same
//	BeforeControlPlaneUpgrade      before each step of the control plane; holds it
//	AfterControlPlaneUpgrade       once per step, which makes it pending; holds workers and the next step
//	BeforeWorkersUpgrade           before workers get a version at which they stop; holds them
//	AfterWorkersUpgrade            once all have it; their first change makes it pending; holds the next step
//	AfterClusterUpgrade            once per upgrade, whose start makes it pending; holds the end of the upgrade
//	BeforeClusterDelete            before the deletion begins; holds it
//
// A pending hook is recorded in an annotation of the Cluster before what makes it pending happens, and the record is removed after its
// extensions succeeded: an interruption between the two repeats a call, and none is lost. Hooks that come before something are called
// again until that is recorded.
//
// All of this is pure, so a dry run decides as the controller does.
//
// What does not belong here: calling extensions, and versions (package upgrade).
package lifecycle
