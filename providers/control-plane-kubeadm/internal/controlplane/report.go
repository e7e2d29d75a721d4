package controlplane

import (
	"context"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	"k8s.io/utils/ptr"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/replicas"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// reportStatus computes the status. There is nothing to report before the infrastructure of the Cluster is ready.
func reportStatus(ctx context.Context, s *scope) (step.Result, error) {
	if s.KCP.DeletionTimestamp != nil || !s.isReported() {
		return step.Done(), nil
	}
	status := &s.KCP.Status
	status.Selector = fmt.Sprintf("%s=%s,%s", clusterv1.ClusterNameLabel, s.Cluster.Name, clusterv1.MachineControlPlaneLabel)
	s.countReplicas()
	// A Machine that is being updated in place may still run another version than its spec has: workers must not be upgraded yet.
	if version := lowestVersion(s.Machines); version != "" && (!s.AnyUpdating() || status.Version == "") {
		status.Version = version
	}
	healthy := healthConditions(s)
	announceBlockers(ctx, s, healthy)
	return step.Done().WithConditions(slices.Concat(machineConditions(s.ControlPlane), healthy)...), nil
}

// countReplicas sets the numbers of replicas.
func (s *scope) countReplicas() {
	status, n := &s.KCP.Status, replicas.Count(s.all())
	status.Replicas = ptr.To(int32(len(s.Machines)))
	status.ReadyReplicas, status.AvailableReplicas, status.UpToDateReplicas = &n.Ready, &n.Available, &n.UpToDate
	status.Versions = replicas.VersionsOf(s.all()).Status()
	older := s.KCP.GetV1Beta1Status()
	older.UpdatedReplicas = 0
	for _, m := range s.Machines {
		if !m.Deleting() && len(m.Outdated) == 0 && !m.Updating() {
			older.UpdatedReplicas++
		}
	}
	if s.observed != nil {
		older.ReadyReplicas = s.observed.ReadyNodes()
	}
	// There may be more Nodes than Machines for a moment.
	older.UnavailableReplicas = max(0, *status.Replicas-older.ReadyReplicas)
	s.KCP.SetV1Beta1Status(older)
}

// lowestVersion returns the lowest version of Machines with a healthy API server, empty if there is none.
func lowestVersion(machines []*snapshot.Machine) string {
	var lowest string
	var least semver.Version
	for _, m := range machines {
		if m.Spec.Version == "" || !condition.IsTrue(m, controlplanev1.MachineAPIServerPodHealthyV1Beta1Condition) {
			continue
		}
		version, err := semver.ParseTolerant(m.Spec.Version)
		if err == nil && (lowest == "" || version.LT(least)) {
			lowest, least = m.Spec.Version, version
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
		children = append(children, condition.Child{Ref: "Machine/" + m.Name, Ready: condition.Get(m, clusterv1.ReadyV1Beta1Condition)})
		allReady = allReady && condition.IsTrue(m, clusterv1.ReadyV1Beta1Condition)
	}
	if ready, ok := condition.Aggregate(controlplanev1.MachinesReadyV1Beta1Condition, children); ok {
		all = append(all, ready)
	}
	if allReady && len(cp.Machines) == cp.Desired() {
		all = append(all, condition.True(controlplanev1.ResizedV1Beta1Condition))
	}
	return all
}

// announceBlockers sends an event if a change has to wait until the control plane is healthy, but not if it waits for a new Machine.
func announceBlockers(ctx context.Context, s *scope, healthy []clusterv1.Condition) {
	broken := slices.ContainsFunc(healthy, func(c clusterv1.Condition) bool { return c.Severity == clusterv1.ConditionSeverityError })
	if why := s.action.Blockers(); why != "" && s.isFree() && (s.action.Begins && broken || s.regressed) {
		step.Warning(ctx, "ControlPlaneUnhealthy", "Waiting for the control plane to pass its checks: %s", why)
	}
}
