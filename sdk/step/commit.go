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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/apiversion"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step/internal/current"
)

// statusAttempts is how often a status write is retried after conflicts.
const statusAttempts = 5

// commit writes the changes of a reconcile to its object.
type commit[T client.Object] struct {
	clients   Clients
	newObject func() T
	// before is the object as it was read; object is what the steps change.
	before, object T
	// observed records the observed generation in the status; nil if it must not be recorded.
	observed func(obj T, generation int64)
	// delay returns how long a status patch may be delayed. Nil: not at all.
	delay func(patch statusPatch) time.Duration

	// reports are the metav1 conditions that the reconcile has found.
	reports []metav1.Condition

	// hold returns how long the first reports of an object are held back. Nil: not at all. held is how long they are.
	hold func() time.Duration
	held time.Duration
	// inert remembers patches of the status that changed nothing. Nil: all are sent.
	inert *inert

	// saved is metadata and spec as they are in the API server. Nil: as in before.
	saved document
	// version is the resource version of the metadata and spec in memory, which lists of a patch were computed from.
	version string
	// latest is the newest known copy of the object: before, the response to a write, or a later read.
	latest T
	// generation is that of the spec that the steps worked on.
	generation int64
	wrote      bool
	// delayed is how long the status write is delayed; zero if it is not.
	delayed time.Duration
	events  []current.Event
	// steps records the outcome of each step.
	steps *stepLog
}

func newCommit[T client.Object](clients Clients, newObject func() T, obj T, steps *stepLog) *commit[T] {
	c := &commit[T]{
		clients: clients, newObject: newObject, steps: steps,
		before: obj.DeepCopyObject().(T), object: obj,
		version: obj.GetResourceVersion(), generation: obj.GetGeneration(),
	}
	c.latest = c.before
	return c
}

func (c *commit[T]) into(ctx context.Context) context.Context { return current.Into(ctx, c) }

// Event records an event on the reconciled object. It is sent after the commit succeeded; if the commit fails it is dropped,
// because the reconcile is retried.
func Event(ctx context.Context, reason, format string, args ...any) {
	recordEvent(ctx, current.Event{Type: corev1.EventTypeNormal, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// Warning is Event with type Warning.
func Warning(ctx context.Context, reason, format string, args ...any) {
	recordEvent(ctx, current.Event{Type: corev1.EventTypeWarning, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// Transition is Event for a change of the status. It is sent with the status write: for a change that is delayed and then
// overwritten, there is no event. See Progress.
func Transition(ctx context.Context, reason, format string, args ...any) {
	recordEvent(ctx, current.Event{Type: corev1.EventTypeNormal, Reason: reason, Message: fmt.Sprintf(format, args...), WithStatus: true})
}

// WarningTransition is Transition with type Warning.
func WarningTransition(ctx context.Context, reason, format string, args ...any) {
	recordEvent(ctx, current.Event{Type: corev1.EventTypeWarning, Reason: reason, Message: fmt.Sprintf(format, args...), WithStatus: true})
}

func recordEvent(ctx context.Context, e current.Event) {
	if r, ok := current.Of(ctx); ok {
		r.Record(e)
	}
}

// SetCondition implements current.Reconcile.
func (c *commit[T]) SetCondition(set clusterv1.Condition) { condition.Set(conditionsOf(c.object), set) }

// StepDone implements current.Reconcile.
func (c *commit[T]) StepDone(s current.Step) { c.steps.add(s) }

// Report implements current.Reconcile.
func (c *commit[T]) Report(conditions []metav1.Condition) {
	c.reports = append(c.reports, conditions...)
}

// Now implements current.Reconcile.
func (c *commit[T]) Now() time.Time { return c.clients.Clock.Now() }

// Record implements current.Reconcile.
func (c *commit[T]) Record(e current.Event) { c.events = append(c.events, e) }

func (c *commit[T]) emit() {
	for _, e := range c.events {
		if c.delayed == 0 || !e.WithStatus {
			c.clients.Recorder.Event(c.object, e.Type, e.Reason, condition.Clean(e.Message))
		}
	}
}

// all writes metadata, spec and status, each only if it changed. If the object no longer exists, because its last
// finalizer was removed, that is not an error.
func (c *commit[T]) all(ctx context.Context) error {
	condition.Stamp(conditionsOf(c.object), conditionsOf(c.before).GetV1Beta1Conditions(), c.clients.Clock.Now())
	c.observe()
	if equality.Semantic.DeepEqual(c.before, c.object) {
		return nil
	}
	if err := c.Checkpoint(ctx); err != nil {
		return client.IgnoreNotFound(err)
	}
	if isGone(c.object) {
		return nil
	}
	c.observe() // The write may have changed the generation.
	return client.IgnoreNotFound(c.status(ctx))
}

func (c *commit[T]) observe() {
	if len(c.reports) > 0 {
		report.Set(reportsOf(c.object), c.generation, c.clients.Clock.Now(), c.reports...)
	}
	if c.observed != nil {
		c.observed(c.object, c.generation)
	}
}

// Checkpoint writes the changes outside of status. A merge patch replaces lists as a whole, so a patch with a list requires the
// resource version that it was computed from.
func (c *commit[T]) Checkpoint(ctx context.Context) error {
	if c.saved == nil && equality.Semantic.DeepEqual(c.before, c.object) {
		return nil // The usual case at a checkpoint; converting both objects would cost far more.
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
	response, err := c.send(ctx, patch, c.clients.Client)
	if err != nil {
		return fmt.Errorf("writing metadata and spec: %w", err)
	}
	c.saved = now
	return c.accept(response, now)
}

// accept evaluates the response to a write of metadata and spec, because other clients may have written the object since it was
// read. If the spec is what the steps worked on, its generation was observed: otherwise each of our own changes would need a
// second status write. If metadata and spec are as in memory, later patches with lists require the version of the response. If
// not, they still require the previous version and fail with a conflict, instead of reverting changes by other clients.
func (c *commit[T]) accept(response T, sent document) error {
	is, err := withoutStatus(response)
	if err != nil {
		return err
	}
	if reflect.DeepEqual(is.spec(), sent.spec()) {
		c.generation = response.GetGeneration()
	}
	if reflect.DeepEqual(is, sent) {
		c.version = response.GetResourceVersion()
	}
	return nil
}

// status writes the changes in status. The patch requires a resource version: the newest one in the cache and, after a conflict,
// the live one. Other controllers write conditions of the same object, which are one list to a merge patch, so the changes of this
// reconcile are merged into the conditions of that version. All other fields belong to this controller. If one of those to
// write changed since, another leader wrote it, and the patch is outdated.
func (c *commit[T]) status(ctx context.Context) error {
	patch, err := statusDifference(c.before, c.object)
	if err != nil || len(patch.document) == 0 {
		return err
	}
	if patch.changesReports() && c.hold != nil {
		if c.held = c.hold(); c.held > 0 {
			patch = patch.withoutReports()
			delete(patch.status(), "observedGeneration") // It never precedes them.
		}
		if len(patch.status()) == 0 {
			return nil
		}
	}
	if c.delay != nil {
		if c.delayed = c.delay(patch); c.delayed > 0 {
			return nil
		}
	}
	if err := patch.addZeros(c.before, c.object); err != nil {
		return err
	}
	c.refresh(ctx)
	key := client.ObjectKeyFromObject(c.object)
	sum, err := patch.fingerprint()
	if err != nil || c.inert.has(key, c.latest.GetResourceVersion(), sum) {
		return err
	}
	for attempt := 0; ; attempt++ {
		if err := c.requireLatest(patch); err != nil {
			return err
		}
		version := c.latest.GetResourceVersion()
		_, err := c.send(ctx, patch.document, statusOf{c.clients.Client})
		if err == nil {
			c.inert.sent(key, version, c.latest.GetResourceVersion(), sum)
			return nil
		}
		if !apierrors.IsConflict(err) || attempt == statusAttempts {
			return fmt.Errorf("writing status: %w", err)
		}
		live := c.newObject()
		if err := c.clients.Live.Get(ctx, client.ObjectKeyFromObject(c.object), live); err != nil {
			return fmt.Errorf("reading the object again after a conflict: %w", err)
		}
		c.latest = live
	}
}

// refresh reads the object from the cache again, which has a newer copy if the object was written during a long reconcile. That
// costs nothing; a conflict costs two requests.
func (c *commit[T]) refresh(ctx context.Context) {
	cached := c.newObject()
	if c.clients.Client.Get(ctx, client.ObjectKeyFromObject(c.object), cached) == nil &&
		newer(cached.GetResourceVersion(), c.latest.GetResourceVersion()) {
		c.latest = cached
	}
}

// requireLatest makes a patch require the newest known version. It returns a conflict if that is another object of the same name, or if a
// field of the patch changed since the object was read.
func (c *commit[T]) requireLatest(patch statusPatch) error {
	if c.latest.GetResourceVersion() != c.before.GetResourceVersion() {
		if err := c.conflict(patch); err != nil {
			return err
		}
	}
	if patch.changesConditions() {
		merged := c.newObject()
		conditionsOf(merged).SetV1Beta1Conditions(mergeConditions(
			conditionsOf(c.before).GetV1Beta1Conditions(), conditionsOf(c.object).GetV1Beta1Conditions(),
			conditionsOf(c.latest).GetV1Beta1Conditions()))
		if err := patch.setConditions(merged); err != nil {
			return err
		}
	}
	if _, changed := patch.status()["conditions"]; changed && patch.reports {
		merged := c.newObject()
		reportsOf(merged).SetConditions(report.Merge(
			reportsOf(c.before).GetConditions(), reportsOf(c.object).GetConditions(), reportsOf(c.latest).GetConditions()))
		if err := patch.setReports(merged); err != nil {
			return err
		}
	}
	patch.require(c.latest.GetResourceVersion())
	return nil
}

func (c *commit[T]) conflict(patch statusPatch) error {
	conflict := func(why string) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: fmt.Sprintf("%T", c.object)}, c.object.GetName(), errors.New(why))
	}
	if c.latest.GetUID() != c.before.GetUID() {
		return conflict("it was deleted and recreated")
	}
	meanwhile, err := statusDifference(c.before, c.latest)
	if err != nil {
		return err
	}
	changed := meanwhile.values(true)
	for path := range patch.values(true) {
		if _, found := changed[path]; found {
			return conflict("status." + path + " was changed by another client")
		}
	}
	return nil
}

// patcher is the part of a client that commits need.
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
	response := c.newObject()
	raw, err := json.Marshal(patch)
	if err != nil {
		return response, err
	}
	response.SetName(c.object.GetName())
	response.SetNamespace(c.object.GetNamespace())
	requested := c.clients.Clock.Now()
	if err := to.Patch(ctx, response, apiversion.Merge(c.latest, raw)); err != nil {
		return response, err
	}
	c.clients.Recent.Wrote(response, requested)
	c.latest, c.wrote = response, true
	return response, nil
}
