package diagnosis

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// Mark are the changes of a Machine's conditions.
type Mark struct {
	Machine *clusterv1.Machine
	Set     []clusterv1.Condition
	// Remove are the types of conditions that are removed.
	Remove []clusterv1.ConditionType
	// Reports are the metav1 conditions for all of these.
	Reports []metav1.Condition
	// First reports whether the Machine is healthy and had no condition HealthCheckSucceeded. Every other mark starts or ends a
	// remediation.
	First bool
}

// Requests reports whether the mark requests a remediation by the owner of the Machine.
func (m Mark) Requests() bool {
	for _, c := range m.Set {
		if c.Type == clusterv1.MachineOwnerRemediatedV1Beta1Condition {
			return true
		}
	}
	return false
}

// Marks returns the changes of the Machines' conditions, for those that change.
func (p *Plan) Marks() []Mark {
	var out []Mark
	for _, f := range p.Findings {
		if m := p.mark(f); len(m.Set)+len(m.Remove)+len(m.Reports) > 0 {
			out = append(out, m)
		}
	}
	return out
}

// mark returns the changes for one Machine. The first mark of a healthy Machine follows its condition NodeHealthy. Condition
// OwnerRemediated belongs to the owner once it is set: it is added if missing, and removed on recovery only before the owner starts.
func (p *Plan) mark(f Finding) Mark {
	const checked, remediated = clusterv1.MachineHealthCheckSucceededV1Beta1Condition, clusterv1.MachineOwnerRemediatedV1Beta1Condition
	m := Mark{Machine: f.Machine}
	was, owner := condition.Get(f.Machine, checked), condition.Get(f.Machine, remediated)
	switch f.Verdict {
	case Unhealthy:
		now := condition.False(checked, clusterv1.ConditionSeverityWarning, f.Reason, "%s", condition.Brief(f.Message()))
		if was == nil || !condition.SameState(*was, now) {
			m.Set = append(m.Set, now)
			m.Reports = append(m.Reports, report.False(clusterv1.MachineHealthCheckSucceededCondition, reportedAs(f.Reason),
				"%s", f.report()))
		}
		if p.remediates(f) && !p.External && owner == nil {
			m.Set = append(m.Set, condition.False(remediated, clusterv1.ConditionSeverityWarning, clusterv1.WaitingForRemediationV1Beta1Reason, ""))
			m.Reports = append(m.Reports, report.False(clusterv1.MachineOwnerRemediatedCondition,
				clusterv1.MachineOwnerRemediatedWaitingForRemediationReason, "Waiting for remediation"))
		}
		if p.remediates(f) && p.External {
			m.Reports = append(m.Reports, p.requested(f, len(m.Set) > 0)...)
		}
	case Healthy:
		if condition.IsTrue(f.Machine, checked) ||
			was == nil && (!f.Due.IsZero() || !condition.IsTrue(f.Machine, clusterv1.MachineNodeHealthyV1Beta1Condition)) {
			return m
		}
		m.First = was == nil
		m.Set = append(m.Set, condition.True(checked))
		m.Reports = append(m.Reports, report.True(clusterv1.MachineHealthCheckSucceededCondition,
			clusterv1.MachineHealthCheckSucceededReason, ""))
		if was != nil && condition.IsFalse(f.Machine, remediated) && owner.Reason == clusterv1.WaitingForRemediationV1Beta1Reason {
			m.Remove = append(m.Remove, remediated)
			m.Reports = append(m.Reports, report.None(clusterv1.MachineOwnerRemediatedCondition))
		}
		if report.Get(f.Machine, clusterv1.MachineExternallyRemediatedCondition) != nil {
			m.Reports = append(m.Reports, report.None(clusterv1.MachineExternallyRemediatedCondition))
		}
	case Failing, Starting, Unknown, Recovering, Deleting:
	}
	return m
}

// requested returns condition ExternallyRemediated if it changes. That a request could not be created is reported until it is. written:
// whether the Machine is written in any case; where the definition does not have metav1 conditions, each reconcile would write it again.
func (p *Plan) requested(f Finding, written bool) []metav1.Condition {
	const t = clusterv1.MachineExternallyRemediatedCondition
	was := report.Get(f.Machine, t)
	now := report.False(t, clusterv1.MachineExternallyRemediatedWaitingForRemediationReason, "Waiting for remediation")
	if p.TemplateMissing {
		now = report.False(t, clusterv1.MachineExternallyRemediatedRemediationTemplateNotFoundReason,
			"The template of remediation requests does not exist")
	}
	failed := was != nil && was.Reason == clusterv1.MachineExternallyRemediatedRemediationRequestCreationFailedReason
	switch {
	case was != nil && was.Reason == now.Reason, failed && !p.TemplateMissing:
		return nil
	case !written && report.Get(f.Machine, clusterv1.MachineHealthCheckSucceededCondition) == nil:
		return nil
	}
	return []metav1.Condition{now}
}

// report returns the message of the metav1 condition of an unhealthy Machine.
func (f Finding) report() string {
	if f.Reason == clusterv1.HasRemediateMachineAnnotationV1Beta1Reason {
		return "Health check failed: " + f.Message()
	}
	return "Health check failed:\n  * " + strings.Join(f.Problems, "\n  * ")
}

// reportedAs returns the reason of v1beta2 for one of v1beta1.
func reportedAs(reason string) string {
	switch reason {
	case clusterv1.UnhealthyNodeConditionV1Beta1Reason:
		return clusterv1.MachineHealthCheckUnhealthyNodeReason
	case clusterv1.NodeStartupTimeoutV1Beta1Reason:
		return clusterv1.MachineHealthCheckNodeStartupTimeoutReason
	case clusterv1.NodeNotFoundV1Beta1Reason:
		return clusterv1.MachineHealthCheckNodeDeletedReason
	case clusterv1.HasRemediateMachineAnnotationV1Beta1Reason:
		return clusterv1.MachineHealthCheckHasRemediateAnnotationReason
	}
	return clusterv1.MachineHealthCheckUnhealthyMachineReason
}
