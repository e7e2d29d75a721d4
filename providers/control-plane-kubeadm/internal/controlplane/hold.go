package controlplane

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/scale"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// hold answers an operation that holds the control plane: this reconcile, and all later ones, do not change anything that the operation
// does. One worker reconciles a control plane, so no other reconcile is under way.
//
// When the operation has ended, its answer is removed before anything is changed again: the next operation must not take it for its own.
func hold(_ context.Context, s *scope) (step.Result, error) {
	if s.operation != nil && !s.operation.Holds() {
		s.KCP.Annotations[fleetv1.OperationObservedAnnotation] = s.operation.Token()
		return step.Done(), nil
	}
	if !s.isHeld() {
		return withoutAnswer(s), nil
	}
	delete(s.KCP.Annotations, fleetv1.OperationObservedAnnotation)
	if s.operation != nil {
		s.KCP.Annotations[fleetv1.OperationObservedAnnotation] = s.operation.Token()
	}
	action, result := scale.Held(s.membership(), s.heldBy)
	s.action = action
	return result.WithOutcome(step.Checkpoint()), nil // A workload cluster that does not respond must not delay the answer.
}

// unhold lets an operation know that it no longer holds a control plane that is being deleted.
func unhold(_ context.Context, s *scope) (step.Result, error) { return withoutAnswer(s), nil }

func withoutAnswer(s *scope) step.Result {
	if _, answered := s.KCP.Annotations[fleetv1.OperationObservedAnnotation]; !answered {
		return step.Done()
	}
	delete(s.KCP.Annotations, fleetv1.OperationObservedAnnotation)
	return step.Checkpoint()
}

// holder returns the operation that holds a control plane, nil if the annotation is invalid, and what is said about it; empty if it is
// not held.
func holder(kcp *controlplanev1.KubeadmControlPlane) (operation *fleetv1.Operation, why string) {
	operation, err := fleetv1.OperationOf(kcp)
	switch {
	case err != nil:
		return nil, fmt.Sprintf("no Machine and no etcd member is changed: %v: correct or remove it", err)
	case operation != nil && !operation.Holds():
		return operation, "" // It needs the rollouts of the control plane.
	case operation != nil:
		return operation, fmt.Sprintf("%s %s holds the control plane: no Machine and no etcd member is changed until it completes or is deleted",
			operation.Kind, operation.Name)
	}
	return nil, ""
}

// isHeld reports whether an operation holds the control plane.
func (s *scope) isHeld() bool { return s.heldBy != "" }

// isFree reports whether no operation holds the control plane.
func (s *scope) isFree() bool { return s.heldBy == "" }

// unlessHeld returns a step that is skipped while an operation holds the control plane.
func unlessHeld(one step.Step[*scope]) step.Step[*scope] { return step.When((*scope).isFree, one) }

// lossHeld replaces what the step stranded has reported about a control plane without Machines, by what holds it.
func lossHeld(s *scope) step.Result {
	c := condition.Get(s.KCP, controlplanev1.MachinesCreatedV1Beta1Condition)
	if c == nil || c.Status == corev1.ConditionTrue || len(s.Machines) > 0 {
		return step.Done().KeepCondition()
	}
	return step.Done().WithConditions(condition.False(controlplanev1.MachinesCreatedV1Beta1Condition, clusterv1.ConditionSeverityInfo,
		controlplanev1.ScalingUpV1Beta1Reason, "%s", s.heldBy))
}
