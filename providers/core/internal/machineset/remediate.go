package machineset

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/bounds"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// remediate deletes Machines that are marked for remediation, as many as the MachineDeployment allows at a time; scaling replaces them.
// A Machine's condition becomes True once the cache shows the deletion, and says why it is not deleted yet. While there are such
// Machines, the result requeues the MachineSet.
func (c *Controller) remediate(ctx context.Context, s *scope) (step.Result, error) {
	for _, m := range s.machines {
		if !m.DeletionTimestamp.IsZero() && condition.IsFalse(m, clusterv1.MachineOwnerRemediatedV1Beta1Condition) {
			s.report(c.SetReports(ctx, m, []clusterv1.Condition{condition.True(clusterv1.MachineOwnerRemediatedV1Beta1Condition)},
				report.False(clusterv1.MachineOwnerRemediatedCondition, clusterv1.MachineOwnerRemediatedMachineDeletingReason,
					"Machine is deleting")))
		}
	}
	if len(toRemediate(s.machines)) == 0 {
		return step.Done(), nil
	}
	now, later, why, err := c.remediations(ctx, s)
	if err != nil {
		s.report(err)
		return step.Done(), nil
	}
	for _, m := range now {
		s.report(c.delete(ctx, m))
	}
	reason := clusterv1.MachineOwnerRemediatedRemediationDeferredReason
	if strings.HasPrefix(why, neverRemediated) {
		reason = clusterv1.MachineOwnerRemediatedCannotBeRemediatedReason
	}
	for _, m := range later {
		s.report(c.SetReports(ctx, m, []clusterv1.Condition{condition.False(clusterv1.MachineOwnerRemediatedV1Beta1Condition,
			clusterv1.ConditionSeverityWarning, clusterv1.WaitingForRemediationV1Beta1Reason, "%s", why)},
			report.False(clusterv1.MachineOwnerRemediatedCondition, reason, "%s", why)))
	}
	if len(later) > 0 {
		return step.Again(preflightBackstop), nil
	}
	return step.Done(), nil
}

// remediations returns which Machines to delete now, which later, and why not now.
func (c *Controller) remediations(ctx context.Context, s *scope) (now, later []*clusterv1.Machine, why string, err error) {
	md, err := c.deployment(ctx, s.set)
	if err != nil {
		return nil, nil, "", err
	}
	if why := pendingRemoval(md, s.set); why != "" {
		return nil, toRemediate(s.machines), why, nil
	}
	if why, err := c.preflightFailure(ctx, s); err != nil || why != "" {
		return nil, toRemediate(s.machines), why, err
	}
	limit, limited, err := maxInFlight(md)
	if err != nil || !limited {
		return toRemediate(s.machines), nil, "", err
	}
	why = fmt.Sprintf("Waiting because there are already too many remediations in progress (spec.strategy.remediation.maxInFlight is %s)",
		md.Spec.Remediation.MaxInFlight)
	if inFlight(s.machines) < limit && !s.live {
		// Machines that the cache does not show as deleted yet would let too many others be deleted.
		own, _, err := list(ctx, c.Live, s.set)
		if err != nil {
			return nil, nil, "", err
		}
		s.machines, s.moved = split(s.set, own)
		s.live = true
	}
	now = toRemediate(s.machines)
	allowed := min(len(now), max(0, limit-inFlight(s.machines)))
	return now[:allowed], now[allowed:], why, nil
}

// toRemediate returns the Machines to remediate, the newest first: they are the most likely to have never had any workload.
func toRemediate(machines []*clusterv1.Machine) []*clusterv1.Machine {
	var out []*clusterv1.Machine
	for _, m := range machines {
		if m.DeletionTimestamp.IsZero() && condition.IsFalse(m, clusterv1.MachineOwnerRemediatedV1Beta1Condition) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b *clusterv1.Machine) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// inFlight returns how many Machines are being deleted for remediation.
func inFlight(machines []*clusterv1.Machine) int {
	n := 0
	for _, m := range machines {
		if !m.DeletionTimestamp.IsZero() && condition.Has(m, clusterv1.MachineOwnerRemediatedV1Beta1Condition) {
			n++
		}
	}
	return n
}

// deployment returns the MachineDeployment of a set, nil if it has none.
func (c *Controller) deployment(ctx context.Context, set *clusterv1.MachineSet) (*clusterv1.MachineDeployment, error) {
	owner := metav1.GetControllerOf(set)
	if owner == nil || owner.Kind != "MachineDeployment" {
		return nil, nil
	}
	md := &clusterv1.MachineDeployment{}
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: owner.Name}, md)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading MachineDeployment %s: %w", owner.Name, err)
	}
	if err != nil || md.UID != owner.UID {
		return nil, nil
	}
	return md, nil
}

// neverRemediated is the beginning of what pendingRemoval returns.
const neverRemediated = "Machine won't be remediated because "

// pendingRemoval returns why Machines of a set are not remediated that has no longer the current template: "" if it has.
func pendingRemoval(md *clusterv1.MachineDeployment, set *clusterv1.MachineSet) string {
	if md == nil {
		return ""
	}
	own, errOwn := strconv.Atoi(set.Annotations[clusterv1.RevisionAnnotation])
	newest, errNewest := strconv.Atoi(md.Annotations[clusterv1.RevisionAnnotation])
	switch {
	case errOwn != nil || errNewest != nil || own >= newest:
		return ""
	case md.Spec.Rollout.Strategy.Type == clusterv1.OnDeleteMachineDeploymentStrategyType:
		return neverRemediated + "its template is outdated: delete it"
	}
	return neverRemediated + "it is pending removal due to rollout"
}

// maxInFlight returns how many Machines may be in remediation at a time, and whether there is a limit.
func maxInFlight(md *clusterv1.MachineDeployment) (n int, limited bool, err error) {
	if md == nil || md.Spec.Remediation.MaxInFlight == nil {
		return 0, false, nil
	}
	limit, err := bounds.Scaled(md.Spec.Remediation.MaxInFlight, ptr.Deref(md.Spec.Replicas, 1), true)
	if err != nil {
		return 0, true, step.Terminal(fmt.Errorf("spec.strategy.remediation.maxInFlight of MachineDeployment %s: %w", md.Name, err))
	}
	return int(limit), true, nil
}
