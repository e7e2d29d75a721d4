package controlplane

import (
	"context"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/replicas"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// reportStatus computes the status. There is nothing to report before the infrastructure of the Cluster is ready.
func reportStatus(ctx context.Context, s *scope) (step.Result, error) {
	if s.KCP.DeletionTimestamp != nil || s.Cluster == nil || !s.Cluster.Status.InfrastructureReady && len(s.Machines) == 0 {
		return step.Done(), nil
	}
	status := &s.KCP.Status
	status.Selector = fmt.Sprintf("%s=%s,%s", clusterv1.ClusterNameLabel, s.Cluster.Name, clusterv1.MachineControlPlaneLabel)
	s.countReplicas(status)
	if version := lowestVersion(s.Machines); version != "" {
		status.Version = &version
	}
	healthy := healthConditions(s)
	announceBlockers(ctx, s, healthy)
	return step.Done().WithConditions(slices.Concat(machineConditions(s.ControlPlane), healthy)...), nil
}

// countReplicas sets the numbers of replicas.
func (s *scope) countReplicas(status *controlplanev1.KubeadmControlPlaneStatus) {
	status.Replicas = int32(len(s.Machines))
	status.UpdatedReplicas = 0
	for _, m := range s.Machines {
		if !m.Deleting() && len(m.Outdated) == 0 {
			status.UpdatedReplicas++
		}
	}
	if s.observed != nil {
		status.ReadyReplicas = s.observed.ReadyNodes()
		status.Ready = status.ReadyReplicas > 0
	}
	status.Versions = replicas.VersionsOf(s.all()).Status()
	n := replicas.Count(s.all())
	if status.V1Beta2 == nil {
		status.V1Beta2 = &controlplanev1.KubeadmControlPlaneV1Beta2Status{}
	}
	status.V1Beta2.ReadyReplicas, status.V1Beta2.AvailableReplicas, status.V1Beta2.UpToDateReplicas = &n.Ready, &n.Available, &n.UpToDate
	// There may be more Nodes than Machines for a moment.
	status.UnavailableReplicas = max(0, status.Replicas-status.ReadyReplicas)
}

// lowestVersion returns the lowest version of Machines with a healthy API server, empty if there is none.
func lowestVersion(machines []*snapshot.Machine) string {
	var lowest string
	var least semver.Version
	for _, m := range machines {
		if m.Spec.Version == nil || !condition.IsTrue(m, controlplanev1.MachineAPIServerPodHealthyCondition) {
			continue
		}
		version, err := semver.ParseTolerant(*m.Spec.Version)
		if err == nil && (lowest == "" || version.LT(least)) {
			lowest, least = *m.Spec.Version, version
		}
	}
	return lowest
}

// machineConditions returns the conditions that aggregate the Ready conditions of the Machines.
func machineConditions(cp *snapshot.ControlPlane) []clusterv1.Condition {
	var all []clusterv1.Condition
	children := make([]condition.Child, 0, len(cp.Machines))
	allReady := true
	for _, m := range cp.Machines {
		children = append(children, condition.Child{Ref: "Machine/" + m.Name, Ready: condition.Get(m, clusterv1.ReadyCondition)})
		allReady = allReady && condition.IsTrue(m, clusterv1.ReadyCondition)
	}
	if ready, ok := condition.Aggregate(controlplanev1.MachinesReadyCondition, children); ok {
		all = append(all, ready)
	}
	if allReady && len(cp.Machines) == cp.Desired() {
		all = append(all, condition.True(controlplanev1.ResizedCondition))
	}
	return all
}

// announceBlockers sends an event if a change has to wait until the control plane is healthy, but not if it waits for a new Machine.
func announceBlockers(ctx context.Context, s *scope, healthy []clusterv1.Condition) {
	broken := slices.ContainsFunc(healthy, func(c clusterv1.Condition) bool { return c.Severity == clusterv1.ConditionSeverityError })
	if why := s.action.Blockers(); why != "" && (s.action.Begins && broken || s.regressed) {
		step.Warning(ctx, "ControlPlaneUnhealthy", "Waiting for the control plane to pass its checks: %s", why)
	}
}
