package controlplane

import (
	"context"
	"errors"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// inspect sets the conditions of the Machines for their components and etcd members, with one write per Machine whose health
// changed. Without a connection, conditions stay unchanged until the connection counts as lost.
func (c *Controller) inspect(ctx context.Context, s *scope) (step.Result, error) {
	if s.connection.Workload != nil {
		observed, err := health.Observe(ctx, s.ControlPlane, s.connection.Workload)
		if err != nil {
			return step.Done(), err
		}
		s.observed = observed
	} else if !s.connection.Lost {
		return step.Done(), nil
	}
	result := step.Done()
	var errs []error
	for _, m := range s.Machines {
		current := health.Conditions(s.ControlPlane, m, s.observed)
		s.regressed = s.regressed || regressed(m, current)
		if err := c.SetConditions(ctx, m.Machine, current...); err != nil {
			errs = append(errs, err)
		}
		if s.observed != nil && onlyMemberUnhealthy(s.ControlPlane, m) {
			result = step.Again(health.EtcdBackstop)
		}
	}
	return result, errors.Join(errs...)
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
	if !cp.StackedEtcd() || m.Deleting() || m.Node() == "" || condition.IsTrue(m, controlplanev1.MachineEtcdMemberHealthyCondition) {
		return false
	}
	for _, c := range health.Components(true) {
		if !condition.IsTrue(m, c.Condition) {
			return false
		}
	}
	return true
}
