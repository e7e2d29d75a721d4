package machinedeployment

import (
	"context"
	"fmt"
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
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
	n := s.counts()
	md.Status.Selector, md.Status.Replicas = selector.String(), &n.replicas
	md.Status.Versions = replicas.VersionsOf(s.machines).Status()
	setCounts(&md.Status, replicas.Count(s.machines))
	older := md.GetV1Beta1Status()
	older.UpdatedReplicas, older.ReadyReplicas = &n.updated, &n.ready
	older.AvailableReplicas, older.UnavailableReplicas = &n.available, &n.unavailable
	md.SetV1Beta1Status(older)
	if !md.DeletionTimestamp.IsZero() {
		return step.Done(), nil // Only the counters still change.
	}
	md.Status.SetTypedPhase(s.phase(n))
	s.setAvailable(n.available)
	s.setMachineSetReady()
	return step.Done(), nil
}

// setCounts sets the counters that follow from the conditions of Machines.
func setCounts(status *clusterv1.MachineDeploymentStatus, n replicas.Counts) {
	status.ReadyReplicas, status.AvailableReplicas, status.UpToDateReplicas = &n.Ready, &n.Available, &n.UpToDate
}

// counts are the numbers of Machines whose Nodes are ready, and of others.
type counts struct{ replicas, updated, ready, available, unavailable int32 }

func (s *scope) counts() counts {
	var out counts
	for _, set := range s.sets {
		machines := s.tally(set)
		out.replicas += machines.Replicas + machines.Moved
		out.ready += machines.Ready
		out.available += machines.Available
	}
	if s.current != nil {
		out.updated = s.tally(s.current).Replicas
	}
	out.unavailable = int32(max(0, min(s.planned()-int64(out.available), math.MaxInt32)))
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
func (s *scope) phase(n counts) clusterv1.MachineDeploymentPhase {
	var phase clusterv1.MachineDeploymentPhase
	desired := s.replicas()
	switch {
	case n.ready == desired:
		phase = clusterv1.MachineDeploymentPhaseRunning
	case n.ready < desired:
		phase = clusterv1.MachineDeploymentPhaseScalingUp
	}
	if s.planned() < int64(n.available) {
		phase = clusterv1.MachineDeploymentPhaseScalingDown
	}
	for _, set := range s.sets {
		if older := set.GetV1Beta1Status(); older.FailureReason != nil || older.FailureMessage != nil {
			phase = clusterv1.MachineDeploymentPhaseFailed
		}
	}
	return phase
}

func (s *scope) setAvailable(available int32) {
	md := s.deployment
	needed := s.replicas() - s.unavailable
	if available >= needed {
		condition.Set(md, condition.True(clusterv1.MachineDeploymentAvailableV1Beta1Condition))
		return
	}
	condition.Set(md, condition.False(clusterv1.MachineDeploymentAvailableV1Beta1Condition, clusterv1.ConditionSeverityWarning,
		clusterv1.WaitingForAvailableMachinesV1Beta1Reason, "At least %d replicas must be available, but only %d are",
		needed, available))
}

func (s *scope) setMachineSetReady() {
	fallback := condition.Fallback(false, clusterv1.WaitingForMachineSetFallbackV1Beta1Reason)
	if s.current == nil {
		fallback.Type = clusterv1.MachineSetReadyV1Beta1Condition
		condition.Set(s.deployment, fallback)
		return
	}
	condition.Set(s.deployment, condition.Mirror(clusterv1.MachineSetReadyV1Beta1Condition, s.current, fallback))
}
