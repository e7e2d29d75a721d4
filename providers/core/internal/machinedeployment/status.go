package machinedeployment

import (
	"context"
	"fmt"
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/replicas"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// status summarizes the MachineSets, once they have been listed.
func status(_ context.Context, s *scope) (step.Result, error) {
	if !s.listed {
		return step.Done(), nil
	}
	md := s.deployment
	selector, err := metav1.LabelSelectorAsSelector(&md.Spec.Selector)
	if err != nil {
		return step.Done(), step.Terminal(fmt.Errorf("spec.selector of MachineDeployment %s: %w", md.Name, err))
	}
	counts := s.counts()
	counts.Selector = selector.String()
	counts.ObservedGeneration, counts.Conditions = md.Status.ObservedGeneration, md.Status.Conditions
	counts.V1Beta2 = md.Status.V1Beta2.DeepCopy()
	counts.Versions = replicas.VersionsOf(s.machines).Status()
	setCounts(&counts, replicas.Count(s.machines))
	counts.SetTypedPhase(s.phase(counts))
	md.Status = counts
	s.setAvailable()
	s.setMachineSetReady()
	return step.Done(), nil
}

// setCounts sets the counters of v1beta2.
func setCounts(status *clusterv1.MachineDeploymentStatus, n replicas.Counts) {
	if status.V1Beta2 == nil {
		status.V1Beta2 = &clusterv1.MachineDeploymentV1Beta2Status{}
	}
	status.V1Beta2.ReadyReplicas, status.V1Beta2.AvailableReplicas, status.V1Beta2.UpToDateReplicas = &n.Ready, &n.Available, &n.UpToDate
}

// counts returns a status with only the counters.
func (s *scope) counts() clusterv1.MachineDeploymentStatus {
	var out clusterv1.MachineDeploymentStatus
	for _, set := range s.sets {
		machines := s.tally(set)
		out.Replicas += machines.Replicas
		out.ReadyReplicas += machines.Ready
		out.AvailableReplicas += machines.Available
	}
	if s.current != nil {
		out.UpdatedReplicas = s.tally(s.current).Replicas
	}
	out.UnavailableReplicas = int32(max(0, min(s.planned()-int64(out.AvailableReplicas), math.MaxInt32)))
	return out
}

// planned returns the sum of spec.replicas of the MachineSets.
func (s *scope) planned() int64 {
	var sum int64
	for _, set := range s.sets {
		sum += int64(max(0, ptr.Deref(set.Spec.Replicas, 0)))
	}
	return sum
}

// phase returns the phase; the last rule that applies decides. It is empty if none applies.
func (s *scope) phase(counts clusterv1.MachineDeploymentStatus) clusterv1.MachineDeploymentPhase {
	var phase clusterv1.MachineDeploymentPhase
	desired := s.replicas()
	switch {
	case counts.ReadyReplicas == desired:
		phase = clusterv1.MachineDeploymentPhaseRunning
	case counts.ReadyReplicas < desired:
		phase = clusterv1.MachineDeploymentPhaseScalingUp
	}
	if s.planned() < int64(counts.AvailableReplicas) {
		phase = clusterv1.MachineDeploymentPhaseScalingDown
	}
	for _, set := range s.sets {
		if set.Status.FailureReason != nil || set.Status.FailureMessage != nil {
			phase = clusterv1.MachineDeploymentPhaseFailed
		}
	}
	return phase
}

func (s *scope) setAvailable() {
	md := s.deployment
	needed := s.replicas() - s.unavailable
	if md.Status.AvailableReplicas >= needed {
		condition.Set(md, condition.True(clusterv1.MachineDeploymentAvailableCondition))
		return
	}
	condition.Set(md, condition.False(clusterv1.MachineDeploymentAvailableCondition, clusterv1.ConditionSeverityWarning,
		clusterv1.WaitingForAvailableMachinesReason, "At least %d replicas must be available, but only %d are",
		needed, md.Status.AvailableReplicas))
}

func (s *scope) setMachineSetReady() {
	fallback := condition.Fallback(false, clusterv1.WaitingForMachineSetFallbackReason)
	if s.current == nil {
		fallback.Type = clusterv1.MachineSetReadyCondition
		condition.Set(s.deployment, fallback)
		return
	}
	condition.Set(s.deployment, condition.Mirror(clusterv1.MachineSetReadyCondition, s.current, fallback))
}
