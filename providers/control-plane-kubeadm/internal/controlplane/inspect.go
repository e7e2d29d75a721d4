package controlplane

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// inspect sets the conditions of the Machines for their components and etcd members, with one write per Machine whose health
// changed. Without a connection, they keep what was known of the workload cluster until the connection counts as down.
func (c *Controller) inspect(ctx context.Context, s *scope) (step.Result, error) {
	if s.connection.Workload != nil {
		observed, err := health.Observe(ctx, s.ControlPlane, s.connection.Workload)
		if err != nil {
			return step.Done(), err
		}
		s.observed = observed
	} else if !s.Initialized() {
		return step.Done(), nil // There is nothing to keep.
	}
	result := step.Done()
	var errs []error
	for _, m := range s.Machines {
		current := s.machineConditions(m)
		s.regressed = s.regressed || regressed(m, current)
		if err := c.SetReports(ctx, m.Machine, current, s.machineReports(m, current, c.Clock.Now())...); err != nil {
			errs = append(errs, err)
		}
		if s.observed != nil && onlyMemberUnhealthy(s.ControlPlane, m) {
			result = step.Again(health.EtcdBackstop)
		}
	}
	return result, errors.Join(errs...)
}

// newborn is how long the status of a new Machine is left to others: its first report goes with that of its health.
const newborn = 10 * time.Second

// keeps reports whether conditions of a Machine keep what was known of the workload cluster, which is unreachable. A deletion is known
// anyway.
func (s *scope) keeps(m *snapshot.Machine) bool {
	return s.observed == nil && !s.connection.Down && !m.Deleting()
}

// machineConditions returns the conditions of a Machine that depend on the workload cluster.
func (s *scope) machineConditions(m *snapshot.Machine) []clusterv1.Condition {
	if s.keeps(m) {
		return nil
	}
	return health.Conditions(s.ControlPlane, m, s.observed)
}

// machineReports returns the metav1 conditions of a Machine. Whether it is up to date is also known of a Machine without a Node.
func (s *scope) machineReports(m *snapshot.Machine, current []clusterv1.Condition, now time.Time) []metav1.Condition {
	var all []metav1.Condition
	switch {
	case s.keeps(m):
	case s.observed == nil && !m.Deleting():
		all = health.Lost(s.ControlPlane, m, s.connection.Since)
	default:
		all = append(health.Reports(current), health.NodeReports(m, s.observed)...)
	}
	known := report.Get(m, clusterv1.MachineUpToDateCondition) != nil
	if !m.Deleting() && (m.Node() != "" || known || now.Sub(m.CreationTimestamp.Time) >= newborn) {
		all = append(all, upToDateReport(m, s.KCP.Spec.Version))
	}
	return all
}

// regressed reports whether one of the conditions is an error and was True before.
func regressed(m *snapshot.Machine, current []clusterv1.Condition) bool {
	for _, c := range current {
		if condition.IsTrue(m, c.Type) && c.Severity == clusterv1.ConditionSeverityError {
			return true
		}
	}
	return false
}

// onlyMemberUnhealthy reports whether everything but the etcd member is healthy. The recovery of a member causes no event.
func onlyMemberUnhealthy(cp *snapshot.ControlPlane, m *snapshot.Machine) bool {
	if !cp.StackedEtcd() || m.Deleting() || m.Node() == "" || condition.IsTrue(m, controlplanev1.MachineEtcdMemberHealthyV1Beta1Condition) {
		return false
	}
	for _, c := range health.Components(true) {
		if !condition.IsTrue(m, c.Condition) {
			return false
		}
	}
	return true
}
