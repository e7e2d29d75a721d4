package controlplane

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	corev1 "k8s.io/api/core/v1"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

// report computes the status from what this reconcile saw. As long as the Cluster's infrastructure is not ready there is
// nothing to tell, and nothing is written.
func (c *Controller) report(ctx context.Context, s *scope) (step.Result, error) {
	if s.kcp.DeletionTimestamp != nil || s.cluster == nil || !s.cluster.Status.InfrastructureReady && len(s.machines) == 0 {
		return step.Done(), nil
	}
	status := &s.kcp.Status
	status.Selector = fmt.Sprintf("%s=%s,%s", clusterv1.ClusterNameLabel, s.cluster.Name, clusterv1.MachineControlPlaneLabel)
	s.count()
	if version := s.lowestVersion(); version != "" {
		status.Version = &version
	}
	s.aggregate()
	s.reportHealth()
	// Waiting for a Machine that comes up is no news.
	if s.unhealthy != "" && (s.began && s.broken() || s.failed) {
		step.Warning(ctx, "ControlPlaneUnhealthy", "Waiting for the control plane to pass its checks: %s", s.unhealthy)
	}
	return step.Done(), nil
}

// broken: it is known of a Machine that it does not work, so waiting alone may not help.
func (s *scope) broken() bool {
	for _, kind := range []clusterv1.ConditionType{controlplanev1.ControlPlaneComponentsHealthyCondition, controlplanev1.EtcdClusterHealthyCondition} {
		if c := condition.Get(s.kcp, kind); c != nil && c.Severity == clusterv1.ConditionSeverityError {
			return true
		}
	}
	return false
}

func (s *scope) count() {
	status := &s.kcp.Status
	status.Replicas = int32(len(s.machines))
	status.UpdatedReplicas = 0
	for _, m := range s.machines {
		if !m.deleting() && len(m.outdated) == 0 {
			status.UpdatedReplicas++
		}
	}
	if s.observed != nil {
		status.ReadyReplicas = s.observed.readyNodes()
		status.Ready = status.ReadyReplicas > 0
	}
	// A Node may outlive its Machine for a moment.
	status.UnavailableReplicas = max(0, status.Replicas-status.ReadyReplicas)
}

// lowestVersion is that of the Machines whose API server works; empty when none does.
func (s *scope) lowestVersion() string {
	var lowest string
	var least semver.Version
	for _, m := range s.machines {
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

// aggregate derives conditions from those of the Machines.
func (s *scope) aggregate() {
	children := make([]condition.Child, 0, len(s.machines))
	allReady := true
	for _, m := range s.machines {
		children = append(children, condition.Child{Ref: "Machine/" + m.Name, Ready: condition.Get(m, clusterv1.ReadyCondition)})
		allReady = allReady && condition.IsTrue(m, clusterv1.ReadyCondition)
	}
	if ready, ok := condition.Aggregate(controlplanev1.MachinesReadyCondition, children); ok {
		condition.Set(s.kcp, ready)
	}
	if allReady && len(s.machines) == s.desired() {
		condition.Set(s.kcp, condition.True(controlplanev1.ResizedCondition))
	}
}

// verdict is an aggregate of Machines' health conditions under way.
type verdict struct {
	kind                clusterv1.ConditionType
	unhealthy, unknown  string
	errors, warns, info []string
	anyTrue, anyUnknown bool
}

func (v *verdict) add(subject string, c *clusterv1.Condition) {
	switch {
	case c == nil:
	case c.Status == corev1.ConditionTrue:
		v.anyTrue = true
	case c.Status == corev1.ConditionUnknown:
		v.anyUnknown = true
	case c.Severity == clusterv1.ConditionSeverityError:
		v.errors = append(v.errors, subject)
	case c.Severity == clusterv1.ConditionSeverityWarning:
		v.warns = append(v.warns, subject)
	default:
		v.info = append(v.info, subject)
	}
}

// maxSubjects bounds how many are named: a workload cluster may have, or claim to have, any number of Nodes.
const maxSubjects = 10

// state: the worst decides; nothing is said of what nobody knows anything about.
func (v *verdict) state(on condition.Setter) {
	bad := func(severity clusterv1.ConditionSeverity, subjects []string) {
		subjects = unique(subjects)
		more := ""
		if left := len(subjects) - maxSubjects; left > 0 {
			subjects, more = subjects[:maxSubjects], fmt.Sprintf(" and %d more", left)
		}
		condition.Set(on, condition.False(v.kind, severity, v.unhealthy, "Not healthy: %s%s", strings.Join(subjects, ", "), more))
	}
	switch {
	case len(v.errors) > 0:
		bad(clusterv1.ConditionSeverityError, v.errors)
	case len(v.warns) > 0:
		bad(clusterv1.ConditionSeverityWarning, v.warns)
	case len(v.info) > 0:
		bad(clusterv1.ConditionSeverityInfo, v.info)
	case v.anyTrue:
		condition.Set(on, condition.True(v.kind))
	case v.anyUnknown:
		condition.Set(on, condition.Unknown(v.kind, v.unknown, ""))
	}
}

// unique drops repetitions, which follow each other.
func unique(names []string) []string {
	var all []string
	for _, name := range names {
		if len(all) == 0 || all[len(all)-1] != name {
			all = append(all, name)
		}
	}
	return all
}

// reportHealth aggregates the health of components and of etcd over all Machines.
func (s *scope) reportHealth() {
	pods := verdict{
		kind: controlplanev1.ControlPlaneComponentsHealthyCondition, unhealthy: controlplanev1.ControlPlaneComponentsUnhealthyReason,
		unknown: controlplanev1.ControlPlaneComponentsUnknownReason,
	}
	etcd := verdict{
		kind: controlplanev1.EtcdClusterHealthyCondition, unhealthy: controlplanev1.EtcdClusterUnhealthyReason,
		unknown: controlplanev1.EtcdClusterUnknownReason,
	}
	if s.lost {
		condition.Set(s.kcp, condition.Unknown(pods.kind, controlplanev1.ControlPlaneComponentsInspectionFailedReason, "The workload cluster cannot be reached"))
		if s.stacked() {
			condition.Set(s.kcp, condition.Unknown(etcd.kind, controlplanev1.EtcdClusterInspectionFailedReason, "The workload cluster cannot be reached"))
		}
		return
	}
	for _, m := range s.machines {
		for _, c := range components(s.stacked()) {
			pods.add("Machine "+m.Name, condition.Get(m, c.condition))
		}
		etcd.add("Machine "+m.Name, condition.Get(m, controlplanev1.MachineEtcdMemberHealthyCondition))
	}
	s.unclaimed(&pods, &etcd)
	pods.state(s.kcp)
	if !s.stacked() {
		condition.Set(s.kcp, condition.True(etcd.kind))
		return
	}
	etcd.state(s.kcp)
}

// unclaimed are Nodes and etcd members that no Machine stands behind. While a Machine has no Node yet, they may be its own.
func (s *scope) unclaimed(pods, etcd *verdict) {
	if s.observed == nil {
		return
	}
	known := map[string]bool{"": true}
	for _, m := range s.machines {
		if m.node() == "" {
			return
		}
		known[m.node()] = true
	}
	for _, name := range slices.Sorted(maps.Keys(s.observed.Nodes)) {
		if !known[name] {
			pods.errors = append(pods.errors, "Node "+name+" without a Machine")
			known[name] = true
		}
	}
	for _, node := range slices.Sorted(maps.Keys(s.observed.Etcd)) {
		for _, name := range s.observed.Etcd[node].Members {
			if !known[name] {
				etcd.errors = append(etcd.errors, "etcd member "+name+" without a Machine")
				known[name] = true
			}
		}
	}
}
