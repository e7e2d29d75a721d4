package remediation

import (
	"fmt"
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/health"
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
		{Name: "VersionPropagated", Run: versionPropagated},
		{Name: checkRetryPeriod, Run: retryPeriod},
		{Name: checkMaxRetry, Run: maxRetry},
		{Name: checkNotTheOnlyMachine, Run: initialized(notTheOnlyMachine)},
		{Name: "NoMachineProvisioning", Run: initialized(noMachineProvisioning)},
		{Name: "NoMachineDeleting", Run: initialized(noMachineDeleting)},
		{Name: "WorkloadClusterReachable", Run: initialized(workloadClusterReachable)},
		{Name: checkHealthyMachineRemains, Run: initialized(healthyMachineRemains)},
	}
}

// The names of checks that do not pass by waiting.
const (
	checkRetryPeriod           = "RetryPeriod"
	checkMaxRetry              = "MaxRetry"
	checkNotTheOnlyMachine     = "NotTheOnlyMachine"
	checkHealthyMachineRemains = "HealthyMachineRemains"
)

// cannot reports whether a Machine cannot be remediated because a check fails; otherwise its remediation is deferred.
func cannot(check string) bool {
	return slices.Contains([]string{checkRetryPeriod, checkMaxRetry, checkNotTheOnlyMachine, checkHealthyMachineRemains}, check)
}

func versionPropagated(r request) []preflight.Failure {
	version := r.PendingVersion()
	if version == "" {
		return nil
	}
	return preflight.Because(fmt.Sprintf("KubeadmControlPlane can't remediate while waiting for a version upgrade to %s to be propagated "+
		"from Cluster.spec.topology", version))
}

func retryPeriod(r request) []preflight.Failure {
	if r.retry == nil || r.retry.tooSoon() == 0 {
		return nil
	}
	return []preflight.Failure{{
		Reason: fmt.Sprintf("KubeadmControlPlane can't remediate this Machine because the operation already failed in the latest %s "+
			"(RetryPeriodSeconds)", r.retry.retryPeriod()),
		RetryAfter: r.retry.tooSoon(),
	}}
}

func maxRetry(r request) []preflight.Failure {
	if r.retry == nil || r.retry.tooMany() == 0 {
		return nil
	}
	return []preflight.Failure{{
		Reason: fmt.Sprintf("KubeadmControlPlane can't remediate this Machine because the operation already failed %d times (MaxRetry)",
			*r.retry.limits.MaxRetry),
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

// healthyMachineRemains fails if the API server, the controller manager and the scheduler would not all run on one of the other Machines.
func healthyMachineRemains(r request) []preflight.Failure {
	healthy := func(m *snapshot.Machine) bool {
		return !slices.ContainsFunc(health.Types(false), func(t clusterv1.ConditionType) bool { return !condition.IsTrue(m, t) })
	}
	if slices.ContainsFunc(r.Machines, func(m *snapshot.Machine) bool { return m != r.machine && !m.Deleting() && healthy(m) }) {
		return nil
	}
	return preflight.Because("No other Machine has healthy control plane components")
}

func workloadClusterReachable(r request) []preflight.Failure {
	if !r.StackedEtcd() || r.Observed != nil {
		return nil
	}
	return preflight.Because("The workload cluster is unreachable")
}
