package remediation

import (
	"cmp"
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// candidates returns the Machines to remediate, in the order in which they are tried. If a remediation is in progress, only its Machine is,
// until its deletion begins: its replacement comes next.
func candidates(cp *snapshot.ControlPlane, inProgress *record) []*snapshot.Machine {
	if inProgress != nil {
		if m := cp.Named(inProgress.Machine); m != nil && !m.Deleting() {
			return []*snapshot.Machine{m}
		}
		return nil
	}
	all := slices.DeleteFunc(slices.Clone(cp.Machines), func(m *snapshot.Machine) bool { return m.Deleting() || !unhealthy(m) })
	slices.SortStableFunc(all, func(a, b *snapshot.Machine) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// rank returns the place of a Machine among those to remediate, as in v1.14: first those that a user asked for, then those without a Node,
// then by what their failure endangers most.
func rank(m *snapshot.Machine) int {
	_, asked := m.Annotations[clusterv1.RemediateMachineAnnotation]
	failing := func(t clusterv1.ConditionType) bool { return condition.Has(m, t) && !condition.IsTrue(m, t) }
	node := report.Get(m, controlplanev1.KubeadmControlPlaneMachineNodeKubeadmLabelsAndTaintsSetCondition)
	reasons := []bool{
		asked,
		m.Node() == "",
		failing(controlplanev1.MachineEtcdMemberHealthyV1Beta1Condition),
		failing(controlplanev1.MachineEtcdPodHealthyV1Beta1Condition),
		failing(controlplanev1.MachineAPIServerPodHealthyV1Beta1Condition),
		failing(controlplanev1.MachineControllerManagerPodHealthyV1Beta1Condition),
		failing(controlplanev1.MachineSchedulerPodHealthyV1Beta1Condition),
		node != nil && node.Status != metav1.ConditionTrue,
	}
	if first := slices.Index(reasons, true); first >= 0 {
		return first
	}
	return len(reasons)
}

// choose returns the first Machine that can be remediated now. If there is none, it returns nil, and why the first one cannot: a Machine
// that cannot be removed must not keep one from being replaced that can.
func choose(
	ctx context.Context, state membership.State, all []*snapshot.Machine, inProgress *record, now time.Time,
) (*snapshot.Machine, status) {
	var first status
	for i, m := range all {
		blocked := blocker(ctx, state, m, inProgress, now)
		if blocked == nil {
			return m, status{}
		}
		if i == 0 {
			first = *blocked
		}
	}
	return nil, first
}

// blocker returns why a Machine cannot be remediated now, nil if it can.
func blocker(ctx context.Context, state membership.State, m *snapshot.Machine, inProgress *record, now time.Time) *status {
	if failure := firstFailure(state, m, inProgress, now); failure != nil {
		why := waiting(failure.Reason, failure.RetryAfter, cannot(failure.Check))
		return &why
	}
	return unsafe(ctx, state, m)
}

// unsafe returns why the etcd member of a Machine must not be removed now, nil if it can be.
func unsafe(ctx context.Context, state membership.State, m *snapshot.Machine) *status {
	if !state.Initialized() || !state.StackedEtcd() {
		return nil
	}
	switch why := state.MayRemove(ctx, m); why {
	case "":
		return nil
	case membership.NoSuccessor:
		return &status{
			reason: clusterv1.RemediationFailedV1Beta1Reason, severity: clusterv1.ConditionSeverityWarning,
			message: "There is no healthy etcd member that can become the leader", after: health.EtcdBackstop,
		}
	default:
		why := waiting("Waiting for "+why, health.EtcdBackstop, true)
		return &why
	}
}
