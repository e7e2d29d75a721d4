package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// inProgress is the message of an update if the extension has none.
const inProgress = "In-place update in progress"

// attempt is the last call for a Machine. It is in memory only: losing it costs one call.
type attempt struct {
	// of is what the extension was called with.
	of string
	// until is when to call again.
	until time.Time
	// said is the message of the extension.
	said string
}

// update lets the extension update a Machine in place whose owner has written what is desired, until the extension reports that the update
// is complete. The marks of the Machine are removed last, so that an interrupted removal continues: see package inplace.
func (c *Controller) update(ctx context.Context, s *scope) (step.Result, error) {
	m := s.machine
	switch {
	case !inplace.IsUpdating(m):
		c.attempts.Delete(m.UID)
		return step.Done(), nil
	case c.updater == nil:
		s.found.update = updating("Waiting for the feature gates RuntimeSDK and InPlaceUpdates of the core provider")
		return step.Done(), nil
	case !inplace.IsPending(m):
		s.found.update = updating("Waiting for the owner of the Machine to write what is desired")
		return step.Done(), nil
	}
	objects, result, err := c.toUpdate(ctx, s)
	if err != nil || result.Ends() {
		s.found.update = updating(inProgress)
		return result, err
	}
	if !inplace.IsMarked(objects.Infrastructure) || objects.Bootstrap != nil && !inplace.IsMarked(objects.Bootstrap) || !inplace.IsMarked(m) {
		return c.endUpdate(ctx, s, objects) // It was interrupted.
	}
	return c.callUpdater(ctx, s, objects)
}

// toUpdate reads the Machine and its objects from the API server: an outdated copy would make the extension complete an update that it has
// not made. The result waits if the cache shows another Machine.
func (c *Controller) toUpdate(ctx context.Context, s *scope) (inplace.Objects, step.Result, error) {
	m := s.machine
	o := inplace.Objects{Machine: &clusterv1.Machine{}}
	result, err := c.Latest(ctx, step.Reread(m, o.Machine, func(live, cached *clusterv1.Machine) bool {
		return live.Generation == cached.Generation && inplace.IsPending(live) && inplace.IsMarked(live) == inplace.IsMarked(cached)
	}))
	if err != nil || result.Ends() {
		return o, result, err
	}
	live := external.Reader{Client: c.Live, Versions: c.follow.Reader.Versions}
	if o.Infrastructure, err = live.Get(ctx, &m.Spec.InfrastructureRef, m.Namespace); err != nil {
		return o, step.Done(), fmt.Errorf("reading the infrastructure machine to update it in place: %w", err)
	}
	if m.Spec.Bootstrap.ConfigRef.IsDefined() {
		if o.Bootstrap, err = live.Get(ctx, &m.Spec.Bootstrap.ConfigRef, m.Namespace); err != nil {
			return o, step.Done(), fmt.Errorf("reading the bootstrap config to update it in place: %w", err)
		}
	}
	return o, step.Done(), nil
}

// callUpdater calls the extension, unless it has asked not to be called yet.
func (c *Controller) callUpdater(ctx context.Context, s *scope, objects inplace.Objects) (step.Result, error) {
	m, of := s.machine, identity(objects)
	if last, ok := c.attempts.Load(m.UID); ok {
		if a, ok := last.(attempt); ok && a.of == of && c.Clock.Now().Before(a.until) {
			s.found.update = updating(a.said)
			return step.Again(a.until.Sub(c.Clock.Now())), nil
		}
	}
	request, err := inplace.Request(objects)
	if err != nil {
		return step.Done(), err
	}
	response := &runtimehooksv1.UpdateMachineResponse{}
	if err := c.updater.CallOnly(ctx, runtimehooksv1.UpdateMachine, m, request, response); err != nil {
		return c.updateFailed(s, err)
	}
	if response.RetryAfterSeconds <= 0 {
		return c.endUpdate(ctx, s, objects)
	}
	after := time.Duration(response.RetryAfterSeconds) * time.Second
	a := attempt{of: of, until: c.Clock.Now().Add(after), said: cmp.Or(extension.Shown(response.GetMessage()), inProgress)}
	c.attempts.Store(m.UID, a)
	s.found.update = updating(a.said)
	return step.Again(after), nil
}

// updateFailed reports a call that failed. It is repeated: later if the extension is busy, else with backoff.
func (c *Controller) updateFailed(s *scope, err error) (step.Result, error) {
	if busy, ok := errors.AsType[*extension.BusyError](err); ok {
		s.found.update = updating(inProgress)
		return step.Again(busy.RetryAfter()), nil
	}
	failed := report.True(clusterv1.MachineUpdatingCondition, clusterv1.MachineInPlaceUpdateFailedReason, "UpdateMachine hook failed: %v", err)
	s.found.update = &failed
	return step.Done(), fmt.Errorf("updating the Machine in place: %w", err)
}

// endUpdate removes the marks, of the Machine last. If one of the objects was written since the extension got it, that is a conflict, and
// the extension is called again.
func (c *Controller) endUpdate(ctx context.Context, s *scope, objects inplace.Objects) (step.Result, error) {
	s.found.update = updating(inProgress)
	for _, obj := range []*unstructured.Unstructured{objects.Infrastructure, objects.Bootstrap} {
		if obj == nil || !inplace.IsMarked(obj) {
			continue
		}
		if err := c.Clients.Patch(ctx, obj, func() { inplace.Unmark(obj) }, step.IfUnchanged); err != nil {
			return step.Done(), fmt.Errorf("removing the mark of %s %s after the update in place: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	m := objects.Machine
	if err := c.Clients.Patch(ctx, m, func() { inplace.End(m) }, step.IfUnchanged); err != nil {
		return step.Done(), fmt.Errorf("removing the marks of the Machine after the update in place: %w", err)
	}
	c.attempts.Delete(m.UID)
	s.found.update = nil
	step.Event(ctx, "SuccessfulUpdateInPlace", "Machine was updated in place")
	return step.Done(), nil
}

// identity changes with what is desired.
func identity(o inplace.Objects) string {
	of := fmt.Sprintf("%d/%d", o.Machine.Generation, o.Infrastructure.GetGeneration())
	if o.Bootstrap != nil {
		of = fmt.Sprintf("%s/%d", of, o.Bootstrap.GetGeneration())
	}
	return of
}

// updating returns the condition Updating of a Machine that is being updated.
func updating(message string) *metav1.Condition {
	c := report.True(clusterv1.MachineUpdatingCondition, clusterv1.MachineInPlaceUpdatingReason, "%s", message)
	return &c
}

// updatingReport returns the condition Updating.
func (s *scope) updatingReport() metav1.Condition {
	if s.found.update != nil {
		return *s.found.update
	}
	return report.False(clusterv1.MachineUpdatingCondition, clusterv1.MachineNotUpdatingReason, "")
}
