package machinedeployment

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/machinedeployment/rollout"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/sdk/ssa"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// write applies the plan to the MachineSets, the current one first: old sets are scaled down only after that succeeded. It waits
// until the cache has the writes, so that the next reconcile does not act on stale data.
func (c *Controller) write(ctx context.Context, s *scope) (step.Result, error) {
	if s.current == nil && ptr.Deref(s.deployment.Spec.Paused, false) {
		return step.Done(), errors.Join(c.ownTemplates(ctx, s), c.writeOld(ctx, s))
	}
	if !s.pending {
		s.copyRevision()
		return step.Done(), nil
	}
	if s.current == nil {
		if err := c.create(ctx, s); err != nil {
			return step.Done(), err
		}
	} else if err := c.update(ctx, s, s.current); err != nil {
		return step.Done(), err
	}
	s.copyRevision()
	return step.Done(), c.writeOld(ctx, s)
}

func (s *scope) copyRevision() {
	metav1.SetMetaDataAnnotation(&s.deployment.ObjectMeta, clusterv1.RevisionAnnotation, s.current.Annotations[clusterv1.RevisionAnnotation])
}

func (c *Controller) writeOld(ctx context.Context, s *scope) error {
	if !s.pending {
		return nil
	}
	var errs []error
	for _, set := range s.old() {
		errs = append(errs, c.update(ctx, s, set))
	}
	return errors.Join(errs...)
}

// create creates the current MachineSet.
func (c *Controller) create(ctx context.Context, s *scope) error {
	name := s.newIdentity.name
	set, _, err := c.apply(ctx, nil, s.desired(nil, s.targets[name]))
	if err != nil {
		warn(ctx, err, "FailedCreate", "Failed to create MachineSet %q: %v", name, err)
		return fmt.Errorf("creating MachineSet %s: %w", name, err)
	}
	if !metav1.IsControlledBy(set, s.deployment) || !set.DeletionTimestamp.IsZero() {
		return step.Stale("MachineSet %s already exists, but is not in the cache yet", name)
	}
	c.AwaitVisible(ctx, set)
	step.Event(ctx, "SuccessfulCreate", "Created MachineSet %q with %d replicas", name, s.targets[name].Replicas)
	s.current, s.sets = set, append(s.sets, set)
	return nil
}

// update updates a MachineSet in the API server and in the scope.
func (c *Controller) update(ctx context.Context, s *scope, live *clusterv1.MachineSet) error {
	target := s.targets[live.Name]
	before := ptr.Deref(live.Spec.Replicas, 0)
	set, changed, err := c.apply(ctx, live, s.desired(live, target))
	if err != nil {
		reason := "FailedUpdate"
		switch {
		case metav1.GetControllerOf(live) == nil:
			reason = "FailedAdopt"
		case before != target.Replicas:
			reason = "FailedScale"
		}
		warn(ctx, err, reason, "Failed to update MachineSet %q: %v", live.Name, err)
		return fmt.Errorf("updating MachineSet %s: %w", live.Name, err)
	}
	if !changed {
		return nil
	}
	c.AwaitVisible(ctx, set)
	if metav1.GetControllerOf(live) == nil {
		step.Event(ctx, "SuccessfulAdopt", "Adopted MachineSet %q", live.Name)
	}
	announceScale(ctx, live.Name, before, target)
	s.sets = slices.Clone(s.sets)
	s.sets[slices.Index(s.sets, live)] = set
	if live == s.current {
		s.current = set
	}
	return nil
}

// apply applies the desired state of a MachineSet and records the response for the MachineSet controller.
func (c *Controller) apply(ctx context.Context, live, desired *clusterv1.MachineSet) (*clusterv1.MachineSet, bool, error) {
	asked, answered := c.Recent.Announce(client.ObjectKeyFromObject(desired))
	defer answered()
	set, changed, err := c.sets.apply(ctx, live, desired)
	if err != nil || !changed {
		return set, changed, err
	}
	// A MachineSet that was not listed, because it lost its label, may have been updated instead of created: it has a status. One that
	// receives Machines has some that it did not create.
	if inplace.Receives(set, "") {
		c.Recent.Forget(set)
		return set, changed, nil
	}
	if live == nil && set.Generation == 1 && equality.Semantic.DeepEqual(set.Status, clusterv1.MachineSetStatus{}) {
		c.Recent.Created(set, asked)
	} else {
		c.Recent.Wrote(set, asked)
	}
	return set, changed, err
}

func announceScale(ctx context.Context, name string, before int32, target rollout.Target) {
	switch {
	case before < target.Replicas:
		step.Event(ctx, "SuccessfulScale", "Scaled up MachineSet %q from %d to %d replicas", name, before, target.Replicas)
	case before > target.Replicas:
		step.Event(ctx, "SuccessfulScale", "Scaled down MachineSet %q from %d to %d replicas", name, before, target.Replicas)
	}
}

// warn emits a Warning event, unless the error is due to a stale cache.
func warn(ctx context.Context, err error, reason, format string, args ...any) {
	if !step.IsStale(err) {
		step.Warning(ctx, reason, format, args...)
	}
}

// serverSide applies MachineSets.
type serverSide struct{ applier *ssa.Applier }

// differs reports whether apply would send a request.
func (a serverSide) differs(ctx context.Context, live, desired *clusterv1.MachineSet) (bool, error) {
	current, configuration, err := ssa.Typed(live, desired, clusterv1.GroupVersion.WithKind(machineSetKind))
	if err != nil {
		return false, err
	}
	return a.applier.Pending(ctx, current, configuration, ssa.Exact())
}

// apply applies the desired state of a MachineSet if it differs. Live is nil for a new one. An existing one must be unchanged
// since it was read, because its number of replicas was computed from that version.
func (a serverSide) apply(ctx context.Context, live, desired *clusterv1.MachineSet) (*clusterv1.MachineSet, bool, error) {
	current, configuration, err := ssa.Typed(live, desired, clusterv1.GroupVersion.WithKind(machineSetKind))
	if err != nil {
		return nil, false, err
	}
	result, changed, err := a.applier.Apply(ctx, current, configuration, ssa.Exact())
	if err != nil || !changed {
		return live, false, err
	}
	set := &clusterv1.MachineSet{}
	return set, true, runtime.DefaultUnstructuredConverter.FromUnstructured(result.Object, set)
}
