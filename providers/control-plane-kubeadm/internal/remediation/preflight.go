package remediation

import (
	"fmt"
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/providers/internal/preflight"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// request is the remediation of one Machine.
type request struct {
	membership.State
	machine *snapshot.Machine
	// retry is nil if the remediation is continued.
	retry *retry
}

// firstFailure returns why the Machine cannot be remediated yet, nil if it can.
func firstFailure(
	state membership.State, m *snapshot.Machine, inProgress *record, now time.Time,
) *preflight.Failure {
	r := request{State: state, machine: m}
	if inProgress == nil {
		retry := retryOf(state.KCP, m, now)
		r.retry = &retry
	}
	return preflight.First(checks(), r)
}

// checks returns the checks that must pass before a Machine is deleted, in the order in which they are reported. Before the cluster
// is initialized there is nothing to lose, so only the limits for retries apply.
func checks() []preflight.Check[request] {
	initialized := func(run func(request) []preflight.Failure) func(request) []preflight.Failure {
		return func(r request) []preflight.Failure {
			if !r.Initialized() {
				return nil
			}
			return run(r)
		}
	}
	return []preflight.Check[request]{
		{Name: "RetryPeriod", Run: retryPeriod},
		{Name: "MaxRetry", Run: maxRetry},
		{Name: "NotTheOnlyMachine", Run: initialized(notTheOnlyMachine)},
		{Name: "NoMachineDeleting", Run: initialized(noMachineDeleting)},
		{Name: "NoMachineProvisioning", Run: initialized(noMachineProvisioning)},
		{Name: "WorkloadClusterReachable", Run: initialized(workloadClusterReachable)},
	}
}

func retryPeriod(r request) []preflight.Failure {
	if r.retry == nil || r.retry.tooSoon() == 0 {
		return nil
	}
	return []preflight.Failure{{
		Reason:     fmt.Sprintf("The previous Machine was replaced less than %s ago", r.retry.retryPeriod()),
		RetryAfter: r.retry.tooSoon(),
	}}
}

func maxRetry(r request) []preflight.Failure {
	if r.retry == nil || r.retry.tooMany() == 0 {
		return nil
	}
	return []preflight.Failure{{
		Reason:     fmt.Sprintf("The limit of %d retries is reached", *r.retry.limits.MaxRetry),
		RetryAfter: r.retry.tooMany(),
	}}
}

func notTheOnlyMachine(r request) []preflight.Failure {
	if len(r.Machines) > 1 {
		return nil
	}
	return preflight.Because("The only Machine of a control plane cannot be replaced")
}

func noMachineDeleting(r request) []preflight.Failure {
	if !slices.ContainsFunc(r.Machines, (*snapshot.Machine).Deleting) {
		return nil
	}
	return preflight.Because("Another Machine is being deleted")
}

func noMachineProvisioning(r request) []preflight.Failure {
	for _, other := range r.Machines {
		if other != r.machine && other.Node() == "" && !condition.IsFalse(other, clusterv1.MachineHealthCheckSucceededV1Beta1Condition) {
			return preflight.Because("Another Machine is being provisioned")
		}
	}
	return nil
}

func workloadClusterReachable(r request) []preflight.Failure {
	if !r.StackedEtcd() || r.Observed != nil {
		return nil
	}
	return preflight.Because("The workload cluster is unreachable")
}
