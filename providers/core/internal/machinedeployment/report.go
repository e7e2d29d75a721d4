package machinedeployment

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/replicas"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// reports returns the metav1 conditions of a MachineDeployment, once its MachineSets have been listed.
func (c *Controller) reports(s *scope) []metav1.Condition {
	if !s.listed {
		return nil
	}
	md, now := s.deployment, c.Clock.Now()
	scale := replicas.Scale{
		Current: len(s.machines), Desired: md.Spec.Replicas, Deleting: md.DeletionTimestamp != nil, Stale: replicas.Stale(s.machines, now),
	}
	down := scale
	down.Current -= s.moved()
	return []metav1.Condition{
		s.availableReport(),
		replicas.MachinesReady(clusterv1.MachinesReadyCondition, s.machines),
		replicas.MachinesUpToDate(clusterv1.MachinesUpToDateCondition, s.machines, now),
		replicas.RollingOut(s.machines), scale.Up(), down.Down(),
		replicas.Remediating(clusterv1.MachineDeploymentKind, s.machines),
		replicas.Deleting(scale.Deleting, replicas.Machines(len(s.machines))...),
	}
}

// availableReport reports whether enough Machines are available.
func (s *scope) availableReport() metav1.Condition {
	t, md := clusterv1.AvailableCondition, s.deployment
	if md.DeletionTimestamp != nil {
		return report.False(t, clusterv1.NotAvailableReason, "Deletion in progress")
	}
	if md.Spec.Replicas == nil {
		return report.Unknown(t, clusterv1.WaitingForReplicasSetReason, "Waiting for spec.replicas set")
	}
	if md.Status.AvailableReplicas == nil {
		return report.Unknown(t, clusterv1.MachineDeploymentAvailableWaitingForAvailableReplicasSetReason,
			"Waiting for status.availableReplicas set")
	}
	available, needed := *md.Status.AvailableReplicas, s.replicas()-s.unavailable
	if available >= needed {
		return report.True(t, clusterv1.AvailableReason, "")
	}
	message := "%d available replicas, at least %d required"
	args := []any{available, needed}
	if limit := md.Spec.Rollout.Strategy.RollingUpdate.MaxUnavailable; limit != nil {
		message += " (spec.strategy.rollout.maxUnavailable is %s, spec.replicas is %d)"
		args = append(args, limit.String(), *md.Spec.Replicas)
	}
	return report.False(t, clusterv1.NotAvailableReason, message, args...)
}
