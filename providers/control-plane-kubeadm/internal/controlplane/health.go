package controlplane

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// healthConditions returns the conditions for the health of components and etcd on all Machines.
func healthConditions(s *scope) []clusterv1.Condition {
	if s.connection.Down {
		return lostConditions(s.StackedEtcd())
	}
	components := summary{
		condition: controlplanev1.ControlPlaneComponentsHealthyV1Beta1Condition,
		unhealthy: controlplanev1.ControlPlaneComponentsUnhealthyV1Beta1Reason,
		unknown:   controlplanev1.ControlPlaneComponentsUnknownV1Beta1Reason,
	}
	etcd := summary{
		condition: controlplanev1.EtcdClusterHealthyV1Beta1Condition,
		unhealthy: controlplanev1.EtcdClusterUnhealthyV1Beta1Reason, unknown: controlplanev1.EtcdClusterUnknownV1Beta1Reason,
	}
	for _, m := range s.Machines {
		for _, c := range health.Components(s.StackedEtcd()) {
			components.add("Machine "+m.Name, condition.Get(m, c.Condition))
		}
		etcd.add("Machine "+m.Name, condition.Get(m, controlplanev1.MachineEtcdMemberHealthyV1Beta1Condition))
	}
	nodes, members := unclaimed(s)
	components.errors, etcd.errors = append(components.errors, nodes...), append(etcd.errors, members...)
	if !s.StackedEtcd() {
		return append(components.aggregate(), condition.True(controlplanev1.EtcdClusterHealthyV1Beta1Condition))
	}
	return append(components.aggregate(), etcd.aggregate()...)
}

// lostConditions returns the conditions while the workload cluster is unreachable.
func lostConditions(stackedEtcd bool) []clusterv1.Condition {
	const message = "The workload cluster is unreachable"
	all := []clusterv1.Condition{
		condition.Unknown(controlplanev1.ControlPlaneComponentsHealthyV1Beta1Condition,
			controlplanev1.ControlPlaneComponentsInspectionFailedV1Beta1Reason, message),
	}
	if stackedEtcd {
		all = append(all,
			condition.Unknown(controlplanev1.EtcdClusterHealthyV1Beta1Condition, controlplanev1.EtcdClusterInspectionFailedV1Beta1Reason, message))
	}
	return all
}

// unclaimed returns Nodes and etcd members without a Machine. While a Machine has no Node yet, they may belong to it.
func unclaimed(s *scope) (nodes, members []string) {
	if s.observed == nil || s.WithoutNode() {
		return nil, nil
	}
	known := map[string]bool{"": true}
	for _, m := range s.Machines {
		known[m.Node()] = true
	}
	for _, name := range slices.Sorted(maps.Keys(s.observed.Nodes)) {
		if !known[name] {
			nodes = append(nodes, "Node "+name+" without a Machine")
			known[name] = true
		}
	}
	for _, node := range slices.Sorted(maps.Keys(s.observed.Etcd)) {
		for _, name := range s.observed.Etcd[node].Members {
			if !known[name] {
				members = append(members, "etcd member "+name+" without a Machine")
				known[name] = true
			}
		}
	}
	return nodes, members
}

// summary aggregates conditions of Machines into one of the control plane.
type summary struct {
	condition               clusterv1.ConditionType
	unhealthy, unknown      string
	errors, warnings, infos []string
	anyTrue, anyUnknown     bool
}

// add adds the condition of a subject, nil if it has none.
func (s *summary) add(subject string, c *clusterv1.Condition) {
	switch {
	case c == nil:
	case c.Status == corev1.ConditionTrue:
		s.anyTrue = true
	case c.Status == corev1.ConditionUnknown:
		s.anyUnknown = true
	case c.Severity == clusterv1.ConditionSeverityError:
		s.errors = append(s.errors, subject)
	case c.Severity == clusterv1.ConditionSeverityWarning:
		s.warnings = append(s.warnings, subject)
	default:
		s.infos = append(s.infos, subject)
	}
}

// aggregate returns the condition of the control plane: the worst condition decides. There is none if no subject has a condition.
func (s *summary) aggregate() []clusterv1.Condition {
	switch {
	case len(s.errors) > 0:
		return s.bad(clusterv1.ConditionSeverityError, s.errors)
	case len(s.warnings) > 0:
		return s.bad(clusterv1.ConditionSeverityWarning, s.warnings)
	case len(s.infos) > 0:
		return s.bad(clusterv1.ConditionSeverityInfo, s.infos)
	case s.anyTrue:
		return []clusterv1.Condition{condition.True(s.condition)}
	case s.anyUnknown:
		return []clusterv1.Condition{condition.Unknown(s.condition, s.unknown, "")}
	}
	return nil
}

// maxSubjects bounds the subjects in a message: a hostile workload cluster may report any number of Nodes.
const maxSubjects = 10

// bad returns a False condition that lists its subjects.
func (s *summary) bad(severity clusterv1.ConditionSeverity, subjects []string) []clusterv1.Condition {
	subjects = slices.Compact(slices.Clone(subjects)) // Those of one subject are adjacent.
	more := ""
	if left := len(subjects) - maxSubjects; left > 0 {
		subjects, more = subjects[:maxSubjects], fmt.Sprintf(" and %d more", left)
	}
	return []clusterv1.Condition{condition.False(s.condition, severity, s.unhealthy, "Not healthy: %s%s", strings.Join(subjects, ", "), more)}
}
