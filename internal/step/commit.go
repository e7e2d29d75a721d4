package step

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/internal/condition"
)

// statusAttempts bounds how often a status write starts over from the live object.
const statusAttempts = 5

// commit writes what a reconcile changed in its object.
type commit[T Object] struct {
	outside Outside
	fresh   func() T
	// before is the object as it was read, object is what the steps work on.
	before, object T
	// saved is metadata and spec as the API server has them; nil: as in before.
	saved document
	// version is the resource version that our writes build on.
	version string
	wrote   bool
	events  []event
}

type event struct {
	kind, reason, message string
}

func newCommit[T Object](outside Outside, fresh func() T, obj T) *commit[T] {
	return &commit[T]{
		outside: outside, fresh: fresh,
		before: obj.DeepCopyObject().(T), object: obj, version: obj.GetResourceVersion(),
	}
}

type contextKey struct{}

// reconciling is what steps reach through their context.
type reconciling interface {
	metadata(ctx context.Context) error
	record(e event)
}

func (c *commit[T]) into(ctx context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, reconciling(c))
}

// save writes metadata and spec now. Outside of a Runner, as in a unit test of steps, it does nothing.
func save(ctx context.Context) error {
	if c, ok := ctx.Value(contextKey{}).(reconciling); ok {
		return c.metadata(ctx)
	}
	return nil
}

// Event announces a transition that a person cares about, on the reconciled object. It is sent after the
// commit succeeded, and not at all when it failed: then the reconcile runs again.
func Event(ctx context.Context, reason, format string, args ...any) {
	announce(ctx, event{corev1.EventTypeNormal, reason, fmt.Sprintf(format, args...)})
}

// Warning is Event for what went wrong.
func Warning(ctx context.Context, reason, format string, args ...any) {
	announce(ctx, event{corev1.EventTypeWarning, reason, fmt.Sprintf(format, args...)})
}

func announce(ctx context.Context, e event) {
	if c, ok := ctx.Value(contextKey{}).(reconciling); ok {
		c.record(e)
	}
}

func (c *commit[T]) record(e event) { c.events = append(c.events, e) }

func (c *commit[T]) emit() {
	for _, e := range c.events {
		c.outside.Recorder.Event(c.object, e.kind, e.reason, e.message)
	}
}

// all writes metadata, spec and status, each only if it changed. An object that is gone by then, because
// its last finalizer was removed, needs no more.
func (c *commit[T]) all(ctx context.Context) error {
	condition.Stamp(c.object, c.before.GetConditions(), c.outside.Clock.Now())
	if equality.Semantic.DeepEqual(c.before, c.object) {
		return nil
	}
	if err := c.metadata(ctx); err != nil {
		return client.IgnoreNotFound(err)
	}
	if c.object.GetDeletionTimestamp() != nil && len(c.object.GetFinalizers()) == 0 {
		return nil
	}
	return client.IgnoreNotFound(c.status(ctx))
}

// metadata writes what changed outside of status. A merge patch replaces lists as a whole, so when one
// changes the write is tied to the version it was computed from.
func (c *commit[T]) metadata(ctx context.Context) error {
	if c.saved == nil && equality.Semantic.DeepEqual(c.before, c.object) {
		return nil // as most checkpoints find; writing both down to compare them costs far more
	}
	var err error
	if c.saved == nil {
		if c.saved, err = withoutStatus(c.before); err != nil {
			return err
		}
	}
	now, err := withoutStatus(c.object)
	if err != nil {
		return err
	}
	patch, err := c.saved.difference(now)
	if err != nil || len(patch) == 0 {
		return err
	}
	if patch.holdsList() {
		patch.require(c.version)
	}
	if err := c.send(ctx, patch, c.outside.Client); err != nil {
		return fmt.Errorf("writing metadata and spec: %w", err)
	}
	c.saved = now
	return nil
}

// status writes what changed in status. Other controllers write conditions of the same object, and to a
// merge patch they are one list: a write that changes them is tied to the version it was computed from,
// and on a conflict only the conditions that this reconcile changed are carried over to the live object.
func (c *commit[T]) status(ctx context.Context) error {
	patch, err := statusDifference(c.before, c.object)
	if err != nil || len(patch) == 0 {
		return err
	}
	conditions := patch.changesConditions()
	if conditions {
		patch.require(c.version)
	}
	for attempt := 0; ; attempt++ {
		err := c.send(ctx, patch, statusOf{c.outside.Client})
		if err == nil {
			return nil
		}
		if !apierrors.IsConflict(err) || !conditions || attempt == statusAttempts {
			return fmt.Errorf("writing status: %w", err)
		}
		live := c.fresh()
		if err := c.outside.Live.Get(ctx, client.ObjectKeyFromObject(c.object), live); err != nil {
			return fmt.Errorf("reading the object again after a conflict: %w", err)
		}
		patch.setConditions(condition.Merge(c.before.GetConditions(), c.object.GetConditions(), live.GetConditions()))
		patch.require(live.GetResourceVersion())
	}
}

// patcher is the part of a client that a commit writes with.
type patcher interface {
	Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error
}

// statusOf patches the status subresource.
type statusOf struct{ client.Client }

// Patch implements patcher.
func (s statusOf) Patch(ctx context.Context, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return s.Status().Patch(ctx, obj, patch)
}

func (c *commit[T]) send(ctx context.Context, patch document, to patcher) error {
	raw, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	answer := c.fresh()
	answer.SetName(c.object.GetName())
	answer.SetNamespace(c.object.GetNamespace())
	if err := to.Patch(ctx, answer, client.RawPatch(types.MergePatchType, raw)); err != nil {
		return err
	}
	c.version, c.wrote = answer.GetResourceVersion(), true
	return nil
}
