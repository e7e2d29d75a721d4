// Package step is the one shape of all controllers.
//
// A controller is declared as data (Controller): its kind, what it watches, a scope with what its steps need, and the steps:
//
//	func (c *Controller) declared() step.Controller[*clusterv1.Machine, *scope] {
//		return step.Controller[*clusterv1.Machine, *scope]{
//			Name:  "machine",
//			New:   func() *clusterv1.Machine { return &clusterv1.Machine{} },
//			Scope: c.scope,
//			Steps: []step.Step[*scope]{
//				step.Do("adopt", c.adopt),
//				step.All(
//					step.Do("bootstrap", c.bootstrap).Sets(clusterv1.BootstrapReadyCondition),
//					step.Do("infrastructure", c.infrastructure).Sets(clusterv1.InfrastructureReadyCondition),
//				),
//			},
//		}
//	}
//
// Add makes what a manager runs from it, and Runner what tests run: the same.
//
// A step changes the scope's objects in memory and says with its Result what follows: the next step (Done), nothing until
// something outside happens (Wait), or the end (Stop). One statement is enough: with
//
//	return step.Wait("Secret " + name + " to exist").Because(clusterv1.WaitingForDataSecretReason), nil
//
// the condition that the step declares says "Waiting for Secret x to exist", a log line tells when the wait begins and ends,
// and metrics count it. Steps are taken in order (InOrder), each whatever the others say (All), or under a condition (When).
//
// The Runner reads the object from the cache, leaves objects alone that are paused or another manager's, takes the steps,
// computes derived conditions, and commits: at most one patch of metadata and spec and one of status, none when nothing
// changed, and what steps changed before one of them failed is never lost. Status writes that a kind declares as Progress are
// postponed for a moment. Results become requeues, errors log lines, and events are sent after the write that they belong to.
// A step that needs what it changed to be in the API server before the next one acts, such as a finalizer, returns Checkpoint.
//
// Other objects than the reconciled one are written through Outside: Create, Patch, Delete, SetConditions. A conflict there, or an
// object that the cache does not show, is a stale error: the reconcile runs again soon, and more and more rarely.
//
// Metrics, all with the labels controller and step: capi_step_duration_seconds, capi_step_outcomes_total and
// capi_step_transitions_total, the latter two with the label outcome.
//
// What does not belong here: anything that knows a kind.
package step
