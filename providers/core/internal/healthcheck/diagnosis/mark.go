package diagnosis

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// Mark are the changes of a Machine's conditions.
type Mark struct {
	Machine *clusterv1.Machine
	Set     []clusterv1.Condition
	// Remove are the types of conditions that are removed.
	Remove []clusterv1.ConditionType
	// First reports whether the Machine is healthy and had no condition HealthCheckSucceeded. Every other mark starts or ends a
	// remediation.
	First bool
}

// Requests reports whether the mark requests a remediation by the owner of the Machine.
func (m Mark) Requests() bool {
	for _, c := range m.Set {
		if c.Type == clusterv1.MachineOwnerRemediatedCondition {
			return true
		}
	}
	return false
}

// Marks returns the changes of the Machines' conditions, for those that change.
func (p *Plan) Marks() []Mark {
	var out []Mark
	for _, f := range p.Findings {
		if m := p.mark(f); len(m.Set)+len(m.Remove) > 0 {
			out = append(out, m)
		}
	}
	return out
}

// mark returns the changes for one Machine. The first mark of a healthy Machine follows its condition NodeHealthy. Condition
// OwnerRemediated belongs to the owner once it is set: it is added if missing, and removed on recovery only before the owner starts.
func (p *Plan) mark(f Finding) Mark {
	const checked, remediated = clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineOwnerRemediatedCondition
	m := Mark{Machine: f.Machine}
	was, owner := condition.Get(f.Machine, checked), condition.Get(f.Machine, remediated)
	switch f.Verdict {
	case Unhealthy:
		now := condition.False(checked, clusterv1.ConditionSeverityWarning, f.Reason, "%s", f.Message)
		if was == nil || !condition.SameState(*was, now) {
			m.Set = append(m.Set, now)
		}
		if p.Allowed && !p.External && owner == nil {
			m.Set = append(m.Set, condition.False(remediated, clusterv1.ConditionSeverityWarning, clusterv1.WaitingForRemediationReason, ""))
		}
	case Healthy:
		if condition.IsTrue(f.Machine, checked) ||
			was == nil && (!f.Due.IsZero() || !condition.IsTrue(f.Machine, clusterv1.MachineNodeHealthyCondition)) {
			return m
		}
		m.First = was == nil
		m.Set = append(m.Set, condition.True(checked))
		if was != nil && condition.IsFalse(f.Machine, remediated) && owner.Reason == clusterv1.WaitingForRemediationReason {
			m.Remove = append(m.Remove, remediated)
		}
	case Failing, Starting, Unknown, Recovering, Deleting:
	}
	return m
}
