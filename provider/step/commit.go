package step

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step/internal/conditionlist"
)

// statusAttempts bounds how often a status write starts over from the live object.
const statusAttempts = 5

// commit writes what a reconcile changed in its object.
type commit[T Object] struct {
	outside Outside
	fresh   func() T
	// before is the object as it was read, object is what the steps work on.
	before, object T
	// observed records in the status which generation it is about; nil when it is not to be recorded.
	observed func(obj T, generation int64)
	// patience says how long a status patch may be postponed. Nil: not at all.
	patience func(patch document) time.Duration

	// saved is metadata and spec as the API server has them; nil: as in before.
	saved document
	// version is that of the object whose metadata and spec are as in memory: lists of a patch were computed from it.
	version string
	// latest is the newest copy of the object that is known: before, an answer, or what a reader had later.
	latest T
	// generation is that of the spec that the steps worked on.
	generation int64
	wrote      bool
	// waits is for how long the status write was postponed; zero when it was not.
	waits  time.Duration
	events []event
	// steps notes what became of each step.
	steps *taken
}

type event struct {
	kind, reason, message string
	// status marks events that go with the status write.
	status bool
}

func newCommit[T Object](outside Outside, fresh func() T, obj T, steps *taken) *commit[T] {
	c := &commit[T]{
		outside: outside, fresh: fresh, steps: steps,
		before: obj.DeepCopyObject().(T), object: obj,
		version: obj.GetResourceVersion(), generation: obj.GetGeneration(),
	}
	c.latest = c.before
	return c
}

type contextKey struct{}

// reconciling is what steps reach through their context.
type reconciling interface {
	// metadata writes metadata and spec now.
	metadata(ctx context.Context) error
	// record keeps an event until the commit succeeded.
	record(e event)
	// state sets a condition of the object.
	state(c clusterv1.Condition)
	// taken is told of each step.
	taken(name string, begun time.Time, r Result, err error)
	now() time.Time
}

func of(ctx context.Context) (reconciling, bool) {
	r, ok := ctx.Value(contextKey{}).(reconciling)
	return r, ok
}

func (c *commit[T]) into(ctx context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, reconciling(c))
}

// Event announces something that was done and a person cares about, on the reconciled object. It is sent after the
// commit succeeded, and not at all when it failed: then the reconcile runs again.
func Event(ctx context.Context, reason, format string, args ...any) {
	announce(ctx, event{kind: corev1.EventTypeNormal, reason: reason, message: fmt.Sprintf(format, args...)})
}

// Warning is Event for what went wrong.
func Warning(ctx context.Context, reason, format string, args ...any) {
	announce(ctx, event{kind: corev1.EventTypeWarning, reason: reason, message: fmt.Sprintf(format, args...)})
}

// Transition is Event for a change that the status records. It is sent when the status is written: a change that was
// postponed and then overtaken is never announced. See Progress.
func Transition(ctx context.Context, reason, format string, args ...any) {
	announce(ctx, event{kind: corev1.EventTypeNormal, reason: reason, message: fmt.Sprintf(format, args...), status: true})
}

func announce(ctx context.Context, e event) {
	if r, ok := of(ctx); ok {
		r.record(e)
	}
}

func (c *commit[T]) state(stated clusterv1.Condition) { condition.Set(c.object, stated) }

func (c *commit[T]) taken(name string, begun time.Time, r Result, err error) {
	c.steps.taken(name, c.now().Sub(begun), r, err)
}

func (c *commit[T]) now() time.Time { return c.outside.Clock.Now() }

func (c *commit[T]) record(e event) { c.events = append(c.events, e) }

func (c *commit[T]) emit() {
	for _, e := range c.events {
		if c.waits == 0 || !e.status {
			c.outside.Recorder.Event(c.object, e.kind, e.reason, e.message)
		}
	}
}

// all writes metadata, spec and status, each only if it changed. An object that is gone by then, because
// its last finalizer was removed, needs no more.
func (c *commit[T]) all(ctx context.Context) error {
	condition.Stamp(c.object, c.before.GetConditions(), c.outside.Clock.Now())
	c.observe()
	if equality.Semantic.DeepEqual(c.before, c.object) {
		return nil
	}
	if err := c.metadata(ctx); err != nil {
		return client.IgnoreNotFound(err)
	}
	if c.object.GetDeletionTimestamp() != nil && len(c.object.GetFinalizers()) == 0 {
		return nil
	}
	c.observe() // the generation may be another one by what was just written
	return client.IgnoreNotFound(c.status(ctx))
}

func (c *commit[T]) observe() {
	if c.observed != nil {
		c.observed(c.object, c.generation)
	}
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
	patch := difference(c.saved, now)
	if len(patch) == 0 {
		return nil
	}
	if patch.holdsList() {
		patch.require(c.version)
	}
	answer, err := c.send(ctx, patch, c.outside.Client)
	if err != nil {
		return fmt.Errorf("writing metadata and spec: %w", err)
	}
	c.saved = now
	return c.adopt(answer, now)
}

// adopt takes over what the answer to a write of metadata and spec tells. Others may have written the object since it
// was read. If the spec is exactly what the steps worked on, then its generation is one that they have seen: without
// this, each change of our own would need a second write of the status to say so. If metadata and spec are as in memory,
// so are their lists: what is computed from them later is tied to the answer's version. Otherwise it stays tied to the
// version before, which makes it a conflict: it would undo what others did.
func (c *commit[T]) adopt(answer T, sent document) error {
	is, err := withoutStatus(answer)
	if err != nil {
		return err
	}
	if reflect.DeepEqual(is.spec(), sent.spec()) {
		c.generation = answer.GetGeneration()
	}
	if reflect.DeepEqual(is, sent) {
		c.version = answer.GetResourceVersion()
	}
	return nil
}

// status writes what changed in status, tied to a version of the object: the newest that the cache has; on a conflict,
// the live one. Other controllers write conditions of the same object, and to a merge patch they are one list: what this
// reconcile changed is carried over to the conditions of that version. All other fields are this controller's. If one of
// those that are to be written changed meanwhile, another leader has written it, and what we have computed is of the past.
func (c *commit[T]) status(ctx context.Context) error {
	patch, err := statusDifference(c.before, c.object)
	if err != nil || len(patch) == 0 {
		return err
	}
	if c.patience != nil {
		if c.waits = c.patience(patch); c.waits > 0 {
			return nil
		}
	}
	c.refresh(ctx)
	for attempt := 0; ; attempt++ {
		if err := c.tie(patch); err != nil {
			return err
		}
		_, err := c.send(ctx, patch, statusOf{c.outside.Client})
		if err == nil {
			return nil
		}
		if !apierrors.IsConflict(err) || attempt == statusAttempts {
			return fmt.Errorf("writing status: %w", err)
		}
		live := c.fresh()
		if err := c.outside.Live.Get(ctx, client.ObjectKeyFromObject(c.object), live); err != nil {
			return fmt.Errorf("reading the object again after a conflict: %w", err)
		}
		c.latest = live
	}
}

// refresh looks whether the cache has a newer copy by now, which it does when somebody else wrote the object during a
// reconcile that took its time. It costs nothing, a conflict costs two requests.
func (c *commit[T]) refresh(ctx context.Context) {
	cached := c.fresh()
	if c.outside.Client.Get(ctx, client.ObjectKeyFromObject(c.object), cached) == nil && newer(cached.GetResourceVersion(), c.latest.GetResourceVersion()) {
		c.latest = cached
	}
}

// tie makes a patch one of the newest copy that is known. It is a conflict if that is another object of the same name, or
// if a field of the patch has changed since the object was read.
func (c *commit[T]) tie(patch document) error {
	if c.latest.GetResourceVersion() != c.before.GetResourceVersion() {
		if err := c.overtaken(patch); err != nil {
			return err
		}
	}
	if patch.changesConditions() {
		patch.setConditions(conditionlist.Merge(c.before.GetConditions(), c.object.GetConditions(), c.latest.GetConditions()))
	}
	patch.require(c.latest.GetResourceVersion())
	return nil
}

func (c *commit[T]) overtaken(patch document) error {
	conflict := func(why string) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: fmt.Sprintf("%T", c.object)}, c.object.GetName(), errors.New(why))
	}
	if c.latest.GetUID() != c.before.GetUID() {
		return conflict("it was deleted and made again")
	}
	meanwhile, err := statusDifference(c.before, c.latest)
	if err != nil {
		return err
	}
	for field := range patch.status() {
		if _, changed := meanwhile.status()[field]; changed && field != "conditions" {
			return conflict("somebody else has written status." + field)
		}
	}
	return nil
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

func (c *commit[T]) send(ctx context.Context, patch document, to patcher) (T, error) {
	answer := c.fresh()
	raw, err := json.Marshal(patch)
	if err != nil {
		return answer, err
	}
	answer.SetName(c.object.GetName())
	answer.SetNamespace(c.object.GetNamespace())
	asked := c.outside.Clock.Now()
	if err := to.Patch(ctx, answer, client.RawPatch(types.MergePatchType, raw)); err != nil {
		return answer, err
	}
	c.outside.Recent.Wrote(answer, asked)
	c.latest, c.wrote = answer, true
	return answer, nil
}
