// Package lifecycle decides which lifecycle hooks of runtime extensions are due for a Cluster, and records which are still to be called.
//
//	BeforeClusterCreate            before the first object is created; holds all of them
//	AfterControlPlaneInitialized   once; the creation makes it pending
//	BeforeClusterUpgrade           before the control plane gets a new version; holds it, and thereby the workers
//	AfterControlPlaneUpgrade       once per upgrade, which makes it pending; holds the workers
//	AfterClusterUpgrade            once per upgrade, which makes it pending
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
