// Package operation is what the three operations on control planes have in common: ControlPlaneRestores, ControlPlaneRecoveries and
// CertificateAuthorityRotations. Who has read one of their controllers knows the others.
//
//	protect.go  label, finalizer, and what keeps copies of an operation from being carried out again
//	run.go      one reconcile of an operation: what its phase and its condition Completed say at the end
//	latest.go   nothing is decided by an old copy of an operation in the cache
//	marks.go    the steps in the status: a step is marked before it is taken, and not taken again once its mark is complete
//	step.go     a step of a controller that has a mark
//	hold.go     the step in which the controller of a control plane is asked to hold still
//	watch.go    what is refused is considered again when the Cluster has changed
//
// What ends an operation, in all three alike:
//
//   - Refused: it would do harm, or cannot work, and nothing has been changed. It is considered again until users have confirmed. From then
//     on a refusal is final: the operation must not begin by surprise when what is wrong has changed.
//   - Failed: it can no longer succeed.
//   - Completed: it has succeeded.
//
// All else is repeated until it succeeds, and reported: NotConfirmed, Waiting, Paused, Running. Once something has been changed that
// only the operation itself puts right, it is neither refused nor ended by its deletion.
//
// How the annotation on a control plane is changed belongs in package hold, what the steps do in the packages of the kinds.
package operation
