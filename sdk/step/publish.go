package step

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step/internal/current"
)

// Publish writes the object as it is in memory, with these conditions, while a step is at work: for steps that take so long that users want
// to see how far they are. The commit at the end of the reconcile goes on from there. It must be called by the goroutine of the step. A
// write that fails costs the step nothing: what it reports is written at the end anyway.
func Publish(ctx context.Context, conditions ...metav1.Condition) error {
	if r, ok := current.Of(ctx); ok {
		return r.Publish(ctx, conditions)
	}
	return nil
}

// Publish implements current.Reconcile.
func (c *commit[T]) Publish(ctx context.Context, conditions []metav1.Condition) error {
	report.Set(reportsOf(c.object), c.generation, c.clients.Clock.Now(), conditions...)
	if err := c.Checkpoint(ctx); err != nil {
		return client.IgnoreNotFound(err)
	}
	delay, hold := c.delay, c.hold
	c.delay, c.hold = nil, nil
	defer func() { c.delay, c.hold = delay, hold }()
	if err := c.status(ctx); err != nil {
		return client.IgnoreNotFound(err)
	}
	// Metadata and spec were saved above, so that before differs from what was read in nothing that the steps have not changed.
	before, ok := c.object.DeepCopyObject().(T)
	if !ok {
		return nil
	}
	before.SetResourceVersion(c.latest.GetResourceVersion())
	c.before = before
	return nil
}
