package healthcheck

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/healthcheck/diagnosis"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// maxTargets is the maximum number of names in status.targets.
const maxTargets = 1000

// countersDelay is how long changes of the counters are held back, so that they are written once for Machines that start together. Only
// users read them.
const countersDelay = 5 * time.Second

// startDelay is how long after the creation of a check its first counters are held back while Machines start: of a new cluster, they
// would be written once per Machine, and report that too few are healthy.
const startDelay = time.Minute

// selectDelay is the same while the check selects no Machine: of a new cluster, they are created after it.
const selectDelay = 10 * time.Second

// status reports the plan. Counters of Machines that start or fail one after another are written together.
func (c *Controller) status(ctx context.Context, s *scope) (step.Result, error) {
	if s.plan == nil {
		return step.Done(), nil
	}
	if !s.plan.Observed {
		c.reportUnreachable(s)
		return step.Done(), nil
	}
	h := s.check
	if left := c.firstDelay(h, s.plan); left > 0 && !reported(h) {
		return step.Again(left), nil
	}
	before := h.DeepCopy()
	h.Status.ExpectedMachines = ptr.To(count(s.plan.Expected))
	h.Status.CurrentHealthy = ptr.To(count(s.plan.Healthy))
	h.Status.RemediationsAllowed = ptr.To(count(s.plan.RemediationsAllowed()))
	h.Status.Targets = s.names()
	allowance := s.plan.Allowance()
	condition.Set(h, allowance)
	was := condition.Get(before, clusterv1.RemediationAllowedV1Beta1Condition)
	restricted := s.plan.Restricted()
	wasRestricted := c.memory.restrict(h, restricted) && was != nil && was.Reason == allowance.Reason
	if was == nil || was.Status != allowance.Status || was.Reason != allowance.Reason || wasRestricted != restricted ||
		h.Status.ObservedGeneration != h.Generation {
		if restricted && !wasRestricted {
			step.WarningTransition(ctx, "RemediationRestricted", "%s", s.plan.Restriction())
		}
		c.memory.settled(h)
		return step.Done(), nil
	}
	if equality.Semantic.DeepEqual(before.Status, h.Status) {
		c.memory.settled(h)
		return step.Done(), nil
	}
	if left := c.memory.pending(h, c.Clock.Now(), countersDelay); left > 0 {
		h.Status = before.Status
		return step.Again(left), nil
	}
	return step.Done(), nil
}

// firstDelay returns how long the first counters are held back.
func (c *Controller) firstDelay(h *clusterv1.MachineHealthCheck, plan *diagnosis.Plan) time.Duration {
	most := time.Duration(0)
	switch {
	case plan.Beginning():
		most = startDelay
	case len(plan.Findings) == 0:
		most = selectDelay
	}
	age := c.Clock.Since(h.CreationTimestamp.Time)
	if age < 0 { // The clocks differ, so the delay is unknown.
		return 0
	}
	return most - age
}

// reported reports whether the check has counters.
func reported(h *clusterv1.MachineHealthCheck) bool {
	return condition.Get(h, clusterv1.RemediationAllowedV1Beta1Condition) != nil
}

// reportUnreachable sets condition RemediationAllowed while the Nodes are unknown, once: the reason changes with every attempt to connect.
func (c *Controller) reportUnreachable(s *scope) {
	h := s.check
	const t, reason = clusterv1.RemediationAllowedV1Beta1Condition, clusterv1.WorkloadClusterUnreachableV1Beta1Reason
	if was := condition.Get(h, t); was != nil && was.Reason == reason {
		return
	}
	since, known := remote.DisconnectedSince(s.unreachable)
	if !known {
		since = c.Clock.Now()
	}
	if remote.IsConnecting(s.unreachable) && c.Clock.Since(since) < connectingBackstop {
		return // After a restart no cluster is connected yet.
	}
	for _, counter := range []**int32{&h.Status.ExpectedMachines, &h.Status.CurrentHealthy, &h.Status.RemediationsAllowed} {
		if *counter == nil {
			*counter = ptr.To[int32](0)
		}
	}
	condition.Set(h, condition.False(t, clusterv1.ConditionSeverityWarning, reason,
		"The Nodes are unknown since %s: no Machine is remediated, except for those with annotation %s. %s",
		since.UTC().Format(time.RFC3339), clusterv1.RemediateMachineAnnotation, condition.Brief(fmt.Sprint(s.unreachable))))
}

// names returns the names of the targets, sorted.
func (s *scope) names() []string {
	var out []string
	for _, f := range s.plan.Findings[:min(len(s.plan.Findings), maxTargets)] {
		out = append(out, f.Machine.Name)
	}
	return out
}

// count converts a number of Machines.
func count(n int) int32 { return int32(max(0, n)) }
