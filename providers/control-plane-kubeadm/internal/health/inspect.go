package health

import (
	"context"
	"errors"
	"time"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// EtcdBackstop is the interval at which etcd is queried while something waits for it: changes of its members cause no events.
const EtcdBackstop = 5 * time.Second

// Inspection is the result of Inspect.
type Inspection struct {
	// Observed is the workload cluster, nil if it was not observed.
	Observed *Observation
	// Regressed is true if a component or etcd member is unhealthy that was healthy before.
	Regressed bool
}

// Inspector sets the health conditions of Machines.
type Inspector struct{ step.Outside }

// Inspect sets the conditions of the Machines for their components and etcd members, with one write per Machine whose health
// changed. Without a connection, conditions stay unchanged until the connection counts as lost.
func (i Inspector) Inspect(ctx context.Context, cp *snapshot.ControlPlane, workload Workload, lost bool) (Inspection, step.Result, error) {
	var found Inspection
	if workload != nil {
		observed, err := Observe(ctx, cp, workload)
		if err != nil {
			return found, step.Done(), err
		}
		found.Observed = observed
	} else if !lost {
		return found, step.Done(), nil
	}
	var (
		result step.Result
		errs   []error
	)
	for _, m := range cp.Machines {
		stated := Conditions(cp, m, found.Observed)
		found.Regressed = found.Regressed || regressed(m, stated)
		if err := i.SetConditions(ctx, m.Machine, stated...); err != nil {
			errs = append(errs, err)
		}
		if found.Observed != nil && onlyMemberUnhealthy(cp, m) {
			result = step.Again(EtcdBackstop)
		}
	}
	return found, result, errors.Join(errs...)
}

// regressed reports whether one of the conditions is an error and was True before.
func regressed(m *snapshot.Machine, stated []clusterv1.Condition) bool {
	for _, c := range stated {
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
	for _, c := range Components(true) {
		if !condition.IsTrue(m, c.Condition) {
			return false
		}
	}
	return true
}

// Conditions returns the health conditions of a Machine. A Machine without a Node has none: its components are unknown.
func Conditions(cp *snapshot.ControlPlane, m *snapshot.Machine, observed *Observation) []clusterv1.Condition {
	node := m.Node()
	switch {
	case node == "":
		return nil
	case m.Deleting():
		var all []clusterv1.Condition
		for _, t := range Types(cp.StackedEtcd()) {
			// The condition of the etcd member may already say what the deletion waits for (package membership).
			if current := condition.Get(m, t); current == nil || current.Reason != clusterv1.DeletingReason {
				all = append(all, condition.False(t, clusterv1.ConditionSeverityInfo, clusterv1.DeletingReason, ""))
			}
		}
		return all
	case observed == nil:
		return unknown(cp.StackedEtcd())
	}
	all := podConditions(observed, node, cp.StackedEtcd())
	if cp.StackedEtcd() {
		all = append(all, memberCondition(observed, node))
	}
	return all
}

// unknown returns the conditions of every Machine while the workload cluster is unreachable.
func unknown(stackedEtcd bool) []clusterv1.Condition {
	const message = "The workload cluster is unreachable"
	var all []clusterv1.Condition
	for _, component := range Components(stackedEtcd) {
		all = append(all, condition.Unknown(component.Condition, controlplanev1.PodInspectionFailedReason, message))
	}
	if stackedEtcd {
		all = append(all, condition.Unknown(controlplanev1.MachineEtcdMemberHealthyCondition, controlplanev1.EtcdMemberInspectionFailedReason, message))
	}
	return all
}
