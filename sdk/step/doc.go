// Package step is the engine of all controllers.
//
// A controller is declared as data (Controller): its kind, its watches, a scope with what its steps need, and the steps:
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
// Add adds the controller to a manager. Tests use Runner, which runs the same declaration without a manager.
//
// A step changes the scope's objects in memory and returns a Result: continue with the next step (Done), wait for an event
// (Wait), or stop (Stop). With
//
//	return step.Wait("Secret " + name + " to exist").Because(clusterv1.WaitingForDataSecretReason), nil
//
// the step's condition (Sets) is False with the message "Waiting for Secret x to exist", a log line reports when the wait begins
// and ends, and metrics count it. Steps run in order (InOrder), all regardless of each other's results (All), or conditionally
// (When).
//
// The Runner reads the object from the cache, skips objects that are paused or belong to another manager, runs the steps,
// derives the conditions of Controller.Conditions, and commits: at most one patch of metadata and spec and one of status, and
// none if nothing changed. Changes by steps before a failed one are written, too. Status writes that Controller.Progress
// declares are delayed briefly. Results become requeues, errors are returned to the work queue, and events are sent after the
// write they belong to. A step that requires its changes, such as a finalizer, to be in the API server before the next step runs
// returns Checkpoint.
//
// A step that takes long can show how far it is with Publish, which writes the status before the reconcile ends.
//
// A step that panics fails with reason ReconcilePanicked, in its condition and in an event; all other steps are treated as after
// any error.
//
// Other objects are written through Clients: Create, Patch, Delete, SetConditions. A conflict, or an object that exists but is
// not in the cache, is a stale error: the reconcile is retried with backoff, and is not logged as an error at first.
//
// Before a step does what cannot be undone, Clients.Latest reads what the decision depends on from the API server, and waits if the
// cached copies are outdated.
//
// Metrics, all with the labels controller and step: capi_step_duration_seconds, capi_step_outcomes_total and
// capi_step_transitions_total, the latter two with the label outcome.
//
// What does not belong here: anything that is specific to a kind.
package step
