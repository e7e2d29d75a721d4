package machineset

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/condition"
	"sigs.k8s.io/cluster-api/internal/step"
)

// preflightBackstop is how often a blocked preflight check is looked at again: control planes are watched
// through their Cluster only, which not every change of theirs reaches.
const preflightBackstop = 15 * time.Second

// scale creates the Machines that are missing, or deletes those that are too many.
func (c *Controller) scale(ctx context.Context, s *scope) (step.Result, error) {
	if s.set.Spec.Replicas == nil {
		return step.Done(), step.Terminal(fmt.Errorf("MachineSet %s has no spec.replicas: its webhook defaults it, write the object again", s.set.Name))
	}
	desired, have := int(*s.set.Spec.Replicas), len(s.machines)
	switch {
	case have < desired:
		condition.Set(s.set, scalingUp(desired, have))
		return c.scaleUp(ctx, s, desired-have)
	case have > desired:
		return step.Done(), c.scaleDown(ctx, s, have-desired)
	}
	condition.Set(s.set, condition.True(clusterv1.MachinesCreatedCondition))
	return step.Done(), nil
}

func (c *Controller) scaleUp(ctx context.Context, s *scope, missing int) (step.Result, error) {
	if _, ok := s.set.Annotations[clusterv1.DisableMachineCreateAnnotation]; ok {
		return step.Done(), nil
	}
	reason, err := c.preflightFailure(ctx, s)
	if err != nil {
		return step.Done(), err
	}
	if reason != "" {
		condition.Set(s.set, condition.False(clusterv1.MachinesCreatedCondition, clusterv1.ConditionSeverityError, clusterv1.PreflightCheckFailedReason, "%s", reason))
		return step.WaitAtMost(preflightBackstop, reason), nil
	}
	var errs []error
	for range missing {
		m, err := c.create(ctx, s)
		if err != nil {
			errs = append(errs, err)
			break
		}
		s.machines = append(s.machines, m)
		if err := c.makeObjects(ctx, s, m); err != nil {
			errs = append(errs, err)
		}
	}
	for _, m := range s.machines[len(s.machines)-min(missing, len(s.machines)):] {
		step.AwaitVisible(ctx, c.Client, m)
	}
	if len(errs) == 0 {
		condition.Set(s.set, condition.True(clusterv1.MachinesCreatedCondition))
	}
	return step.Done(), errors.Join(errs...)
}

// create makes the Machine with the first free ordinal.
func (c *Controller) create(ctx context.Context, s *scope) (*clusterv1.Machine, error) {
	name, err := c.freeName(ctx, s)
	if err != nil {
		return nil, err
	}
	m, _, err := c.apply(ctx, nil, newMachine(s.set, name))
	if err != nil {
		condition.Set(s.set, condition.False(clusterv1.MachinesCreatedCondition, clusterv1.ConditionSeverityError, clusterv1.MachineCreationFailedReason, "%v", err))
		step.Warning(ctx, "FailedCreate", "Failed to create Machine %q: %v", name, err)
		return nil, fmt.Errorf("creating Machine %s: %w", name, err)
	}
	if !metav1.IsControlledBy(m, s.set) || !m.DeletionTimestamp.IsZero() {
		return nil, apierrors.NewAlreadyExists(clusterv1.Resource("machines"), name)
	}
	step.Event(ctx, "SuccessfulCreate", "Created Machine %q", m.Name)
	return m, nil
}

// freeName is the name of the smallest ordinal that no Machine has: neither one of the set, nor one that
// left it because somebody changed its labels.
func (c *Controller) freeName(ctx context.Context, s *scope) (string, error) {
	taken := map[string]bool{}
	for _, m := range s.machines {
		taken[m.Name] = true
	}
	for ordinal := 0; ; ordinal++ {
		name := nameOf(s.set, ordinal)
		if taken[name] {
			continue
		}
		err := c.Client.Get(ctx, client.ObjectKey{Namespace: s.set.Namespace, Name: name}, &clusterv1.Machine{})
		if apierrors.IsNotFound(err) {
			return name, nil
		}
		if err != nil {
			return "", fmt.Errorf("looking for Machine %s: %w", name, err)
		}
	}
}

func (c *Controller) scaleDown(ctx context.Context, s *scope, excess int) error {
	var errs []error
	for _, m := range toDelete(s.machines, s.set.Spec.DeletePolicy, excess, c.Clock.Now()) {
		if !m.DeletionTimestamp.IsZero() {
			continue
		}
		errs = append(errs, c.delete(ctx, m))
	}
	return errors.Join(errs...)
}

func (c *Controller) delete(ctx context.Context, m *clusterv1.Machine) error {
	if err := c.Client.Delete(ctx, m, client.Preconditions{UID: ptr.To(m.UID)}); client.IgnoreNotFound(err) != nil {
		step.Warning(ctx, "FailedDelete", "Failed to delete Machine %q: %v", m.Name, err)
		return fmt.Errorf("deleting Machine %s: %w", m.Name, err)
	}
	step.Event(ctx, "SuccessfulDelete", "Deleted Machine %q", m.Name)
	return nil
}
