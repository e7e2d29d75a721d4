package cluster

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// namesShown is how many names of a kind the condition Deleting lists.
const namesShown = 5

// deletingReport reports what the deletion of a Cluster waits for: extensions, then workers and Machines without control plane object, then
// control plane, then infrastructure.
func (s *scope) deletingReport() metav1.Condition {
	t := clusterv1.DeletingCondition
	if s.DeletionTimestamp == nil {
		return report.False(t, clusterv1.NotDeletingReason, "")
	}
	if s.isHeld {
		return report.True(t, clusterv1.ClusterDeletingWaitingForBeforeDeleteHookReason,
			"Waiting for runtime extensions to allow the deletion")
	}
	if lines := s.remaining(); len(lines) > 0 {
		return report.True(t, clusterv1.ClusterDeletingWaitingForWorkersDeletionReason, "%s", strings.Join(lines, "\n"))
	}
	if s.plane.Object != nil {
		return report.True(t, clusterv1.ClusterDeletingWaitingForControlPlaneDeletionReason, "%s", named(&s.Spec.ControlPlaneRef))
	}
	if s.infrastructure.Object != nil {
		return report.True(t, clusterv1.ClusterDeletingWaitingForInfrastructureDeletionReason, "%s", named(&s.Spec.InfrastructureRef))
	}
	return report.True(t, clusterv1.DeletionCompletedReason, "Deletion completed")
}

func named(ref *clusterv1.ContractVersionedObjectReference) string {
	return fmt.Sprintf("* %s: %s", ref.Kind, ref.Name)
}

// remaining returns a line for each kind of which objects are left that have to be deleted before the control plane.
func (s *scope) remaining() []string {
	var deployments, sets, pools, planes, workers []string
	for i := range s.family.deployments {
		deployments = append(deployments, s.family.deployments[i].Name)
	}
	for i := range s.family.sets {
		sets = append(sets, s.family.sets[i].Name)
	}
	for i := range s.family.pools {
		pools = append(pools, s.family.pools[i].Name)
	}
	for _, m := range s.family.machines {
		if !isControlPlane(m) {
			workers = append(workers, m.Name)
		} else if !s.Spec.ControlPlaneRef.IsDefined() {
			planes = append(planes, m.Name)
		}
	}
	var lines []string
	for _, kind := range []struct {
		name  string
		names []string
	}{
		{"Control plane Machines", planes}, {clusterv1.MachineDeploymentKind + "s", deployments}, {clusterv1.MachineSetKind + "s", sets},
		{clusterv1.MachinePoolKind + "s", pools}, {"Worker Machines", workers},
	} {
		if len(kind.names) > 0 {
			lines = append(lines, "* "+kind.name+": "+listed(kind.names))
		}
	}
	return lines
}

func listed(names []string) string {
	slices.Sort(names)
	if more := len(names) - namesShown; more > 0 {
		return fmt.Sprintf("%s, ... (%d more)", strings.Join(names[:namesShown], ", "), more)
	}
	return strings.Join(names, ", ")
}
