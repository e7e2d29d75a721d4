package remediation

import (
	"fmt"
	"slices"
	"time"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// status is the condition of a Machine about its remediation.
type status struct {
	reason   string
	severity clusterv1.ConditionSeverity
	message  string
	// after is when the remediation is retried without an event; zero means never.
	after time.Duration
}

func waiting(after time.Duration, format string, args ...any) *status {
	return &status{clusterv1.WaitingForRemediationReason, clusterv1.ConditionSeverityWarning, fmt.Sprintf(format, args...), after}
}

// request is the remediation of one Machine.
type request struct {
	membership.State
	machine *snapshot.Machine
	// retry is nil if the remediation is continued.
	retry *retry
}

// check is a check that must pass before a Machine is deleted.
type check struct {
	name string
	// fails returns why the check fails, nil if it passes.
	fails func(request) *status
}

// preflight returns why the Machine cannot be remediated yet, nil if it can.
func preflight(state membership.State, m *snapshot.Machine, inProgress *controlplanev1.LastRemediationStatus, now time.Time) *status {
	r := request{State: state, machine: m}
	if inProgress == nil {
		retry := retryOf(state.KCP, m, now)
		r.retry = &retry
	}
	for _, c := range checks() {
		if why := c.fails(r); why != nil {
			return why
		}
	}
	return nil
}

// checks returns all checks, in the order in which they are reported. Before the cluster is initialized there is nothing to
// lose, so only the limits for retries apply.
func checks() []check {
	initialized := func(fails func(request) *status) func(request) *status {
		return func(r request) *status {
			if !r.Initialized() {
				return nil
			}
			return fails(r)
		}
	}
	return []check{
		{"RetryPeriod", retriesTooSoon},
		{"MaxRetry", retriesTooOften},
		{"NotTheOnlyMachine", initialized(onlyMachine)},
		{"NoMachineDeleting", initialized(anotherDeleting)},
		{"NoMachineProvisioning", initialized(anotherProvisioning)},
		{"WorkloadClusterReachable", initialized(unreachable)},
	}
}

func retriesTooSoon(r request) *status {
	if r.retry == nil || r.retry.tooSoon() == 0 {
		return nil
	}
	return waiting(r.retry.tooSoon(), "The previous Machine was replaced less than %s ago", r.retry.strategy.RetryPeriod.Duration)
}

func retriesTooOften(r request) *status {
	if r.retry == nil || r.retry.tooMany() == 0 {
		return nil
	}
	return waiting(r.retry.tooMany(), "The limit of %d retries is reached", *r.retry.strategy.MaxRetry)
}

func onlyMachine(r request) *status {
	if len(r.Machines) > 1 {
		return nil
	}
	return waiting(0, "The only Machine of a control plane cannot be replaced")
}

func anotherDeleting(r request) *status {
	if !slices.ContainsFunc(r.Machines, (*snapshot.Machine).Deleting) {
		return nil
	}
	return waiting(0, "Another Machine is being deleted")
}

func anotherProvisioning(r request) *status {
	for _, other := range r.Machines {
		if other != r.machine && other.Node() == "" && !condition.IsFalse(other, clusterv1.MachineHealthCheckSucceededCondition) {
			return waiting(0, "Another Machine is being provisioned")
		}
	}
	return nil
}

func unreachable(r request) *status {
	if !r.StackedEtcd() || r.Observed != nil {
		return nil
	}
	return waiting(0, "The workload cluster is unreachable")
}
