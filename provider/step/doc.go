// Package step is the one shape of all controllers.
//
// A controller's Reconcile is an ordered list of steps over a scope (the object, what was fetched for it,
// the clock, small interfaces for the outside):
//
//	func (c *Controller) Reconcile(ctx context.Context, m *clusterv1.Machine) (step.Result, error) {
//		s, err := c.scope(ctx, m)
//		if err != nil {
//			return step.Result{}, err
//		}
//		return step.Run(ctx, s, c.adopt, step.All(c.bootstrap, c.infrastructure, c.node))
//	}
//
// A step changes the scope's objects in memory and says with its Result what follows: the next step
// (Done), nothing until something outside happens (Wait), or the end (Stop). Run walks the list; All
// attempts every step whatever the others say.
//
// A Runner is what controller-runtime calls. It reads the object from the cache, leaves objects alone that
// are paused or another manager's, runs the reconcile, computes derived conditions, and commits: at most
// one patch of metadata and spec and one of status, none when nothing changed, and what steps changed
// before one of them failed is never lost. Status writes that a kind declares as Progress are postponed for
// a moment. It turns results into requeues, errors into log lines, and events into API objects after the
// write that they belong to. A step that needs what it changed to be in the API server before the next one
// acts, such as a finalizer, returns Checkpoint.
//
// What does not belong here: anything that knows a kind.
package step
