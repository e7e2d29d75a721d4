package machineset

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/replicas"
)

// reports returns the metav1 conditions of a MachineSet, once its Machines have been listed.
func (c *Controller) reports(s *scope) []metav1.Condition {
	if !s.listed {
		return nil
	}
	set, now := s.set, c.Clock.Now()
	scale := replicas.Scale{
		Current: len(s.machines), Desired: set.Spec.Replicas, Deleting: set.DeletionTimestamp != nil, Stale: replicas.Stale(s.machines, now),
	}
	up := scale
	if created := condition.Get(set, clusterv1.MachinesCreatedV1Beta1Condition); created != nil && created.Status == corev1.ConditionFalse {
		up.Blocked = append(up.Blocked, cmp.Or(created.Message, created.Reason))
	}
	return []metav1.Condition{
		replicas.MachinesReady(clusterv1.MachinesReadyCondition, s.machines),
		replicas.MachinesUpToDate(clusterv1.MachinesUpToDateCondition, s.machines, now),
		up.Up(), scale.Down(),
		replicas.Remediating(clusterv1.MachineSetKind, s.machines),
		replicas.Deleting(scale.Deleting, replicas.Machines(len(s.machines))...),
	}
}
