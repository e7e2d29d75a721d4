package scale

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/providers/internal/preflight"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Plan decides what to do next, and sets the conditions about it. unreachable is why there is no connection to the workload
// cluster, if that is known.
func Plan(state membership.State, unreachable string) (Action, step.Result) {
	action := Next(input(state, unreachable))
	set := conditions(state.ControlPlane, action, "")
	changing := func(c clusterv1.Condition) bool { return c.Status == corev1.ConditionFalse }
	action.Begins = !slices.ContainsFunc(current(state.KCP), changing) && slices.ContainsFunc(set, changing)
	return action, step.Done().WithConditions(set...)
}

// HeldByOperation is the check that fails while an operation holds the control plane.
const HeldByOperation = "HeldByOperation"

// Held is Plan while the control plane is held, why says by what: the action is not taken.
func Held(state membership.State, why string) (Action, step.Result) {
	action := Next(input(state, ""))
	if action.Kind != Nothing {
		action.Blocked = []preflight.Failure{{Check: HeldByOperation, Reason: why}}
	}
	return action, step.Done().WithConditions(conditions(state.ControlPlane, action, ": "+why)...)
}

// input returns what Next decides on.
func input(state membership.State, unreachable string) Input {
	in := Input{
		Desired: state.Desired(), MaxSurge: 1, Initialized: state.Initialized(), OrphanedMembers: state.OrphanedMembers(),
		PendingVersion: state.PendingVersion(),
	}
	if surge := state.KCP.Spec.Rollout.Strategy.RollingUpdate.MaxSurge; surge != nil {
		in.MaxSurge = surge.IntValue()
	}
	for _, domain := range state.Cluster.Status.FailureDomains {
		if ptr.Deref(domain.ControlPlane, false) {
			in.FailureDomains = append(in.FailureDomains, domain.Name)
		}
	}
	slices.Sort(in.FailureDomains)
	_, in.Replacing = state.KCP.Annotations[controlplanev1.RemediationInProgressAnnotation]
	if state.StackedEtcd() && state.Observed != nil {
		in.NoQuorum = state.Observed.EtcdCluster().MayAdd()
		in.OldEtcd = oldEtcd(state)
	}
	if state.Observed == nil {
		in.Unreachable = cmp.Or(unreachable, "the workload cluster has not been inspected yet")
	}
	for _, m := range state.Machines {
		in.Machines = append(in.Machines, machine(m, state.StackedEtcd()))
	}
	return in
}

// machine returns what Next decides on of a Machine.
func machine(m *snapshot.Machine, stackedEtcd bool) Machine {
	p := Machine{
		Name: m.Name, Created: m.CreationTimestamp.Time,
		Unwanted: ownership.Marked(m), Broken: ownership.Broken(m.Machine),
		HasNode: m.Node() != "", Marked: condition.IsFalse(m, clusterv1.MachineHealthCheckSucceededV1Beta1Condition),
		Deleting: m.Deleting(), Held: m.Deleting() && membership.HasHook(m.Machine), Outdated: len(m.Outdated) > 0,
		FailureDomain: m.Spec.FailureDomain,
		Updatable:     len(m.Outdated) > 0 && !m.Expired && m.Config != nil && m.Infrastructure != nil && !snapshot.Abandoned(m.Machine),
	}
	if m.Updating() {
		p.Updating = !updateFailed(m)
		if !p.Updating {
			p.Problems = []string{"its update in place failed"}
		}
	}
	if m.Node() == "" {
		p.Problems = []string{"it has no Node"} // so the health of its components is unknown
		return p
	}
	for _, t := range health.Types(stackedEtcd) {
		switch c := condition.Get(m, t); {
		case c == nil:
			p.Problems = append(p.Problems, string(t)+" is unknown")
		case c.Status != corev1.ConditionTrue:
			p.Problems = append(p.Problems, fmt.Sprintf("%s is %s (%s)", t, c.Status, c.Reason))
			p.Broken = p.Broken || c.Status == corev1.ConditionFalse
		}
	}
	return p
}

// conditions returns the conditions about the change, with a note at the end of their messages. Resized becomes True when all Machines are
// ready (package status).
func conditions(cp *snapshot.ControlPlane, action Action, note string) []clusterv1.Condition {
	const warning = clusterv1.ConditionSeverityWarning
	all := current(cp.KCP)
	set := func(c clusterv1.Condition) {
		all = slices.DeleteFunc(all, func(other clusterv1.Condition) bool { return other.Type == c.Type })
		all = append(all, c)
	}
	switch outdated := cp.OutdatedCount(); {
	case action.Rollout || cp.AnyUpdating():
		message := fmt.Sprintf("Rolling %d Machines with an outdated spec (%d up to date)", outdated, len(cp.Machines)-outdated)
		if why := action.OldEtcd(); why != "" {
			message += " is blocked: " + why
		}
		set(condition.False(controlplanev1.MachinesSpecUpToDateV1Beta1Condition, warning, controlplanev1.RollingUpdateInProgressV1Beta1Reason,
			"%s", message+note))
	case condition.Has(cp.KCP, controlplanev1.MachinesSpecUpToDateV1Beta1Condition):
		set(condition.True(controlplanev1.MachinesSpecUpToDateV1Beta1Condition))
	}
	switch count, desired := len(cp.Machines), cp.Desired(); {
	case count < desired:
		set(condition.False(controlplanev1.ResizedV1Beta1Condition, warning, controlplanev1.ScalingUpV1Beta1Reason,
			"Scaling up control plane to %d replicas (actual %d)%s", desired, count, note))
	case count > desired:
		set(condition.False(controlplanev1.ResizedV1Beta1Condition, warning, controlplanev1.ScalingDownV1Beta1Reason,
			"Scaling down control plane to %d replicas (actual %d)%s", desired, count, note))
	}
	return all
}

// current returns these conditions as they are.
func current(kcp *controlplanev1.KubeadmControlPlane) []clusterv1.Condition {
	var all []clusterv1.Condition
	for _, t := range []clusterv1.ConditionType{controlplanev1.MachinesSpecUpToDateV1Beta1Condition, controlplanev1.ResizedV1Beta1Condition} {
		if c := condition.Get(kcp, t); c != nil {
			all = append(all, *c)
		}
	}
	return all
}
