package diagnosis

import (
	"fmt"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/ownership"
)

// Plan is the diagnosis of all targets of a check.
type Plan struct {
	// Findings are in the order of the targets.
	Findings []Finding
	// Expected and Healthy count the targets. All others, such as Machines that start or are being deleted, count as unhealthy.
	Expected, Healthy int
	// Allowed reports whether the number of unhealthy Machines is within the limit.
	Allowed bool
	Limit   Limit
	// Observed reports whether the counters reflect the Nodes. Otherwise the workload cluster is unreachable, and they are what was
	// observed last.
	Observed bool
	// External reports whether Machines are remediated by external requests, not by their owners.
	External bool
	// TemplateMissing reports whether External requests cannot be created, because their template does not exist.
	TemplateMissing bool
	// Brake is why no Machine of any Cluster is remediated, except those that a user annotated. Nil: they are.
	Brake *Brake
}

// New returns the plan for an input.
func New(in Input) (*Plan, error) {
	p := &Plan{
		Expected: len(in.Targets), External: in.Check.Spec.Remediation.TemplateRef.IsDefined(),
		Observed: in.Nodes != nil || !Initialized(in.Cluster),
	}
	for _, m := range in.Targets {
		f := in.diagnose(m)
		p.Findings = append(p.Findings, f)
		if p.countsAsHealthy(f) {
			p.Healthy++
		}
	}
	var err error
	p.Limit, err = LimitOf(&in.Check.Spec, p.Expected)
	p.Allowed = err == nil && p.Limit.Allows(p.Unhealthy())
	return p, err
}

// countsAsHealthy reports whether a Machine is healthy. One that its owner may be replacing already is not, even if it has recovered:
// otherwise another one could be remediated in addition. If the Nodes are unknown, what was observed last counts.
func (p *Plan) countsAsHealthy(f Finding) bool {
	if condition.IsFalse(f.Machine, clusterv1.MachineOwnerRemediatedV1Beta1Condition) {
		return false
	}
	if !p.Observed && f.Verdict == Unknown {
		return !ownership.Unhealthy(f.Machine) && condition.IsTrue(f.Machine, clusterv1.MachineNodeHealthyV1Beta1Condition)
	}
	return f.Verdict == Healthy
}

// Unhealthy returns the number of Machines that count against the limit.
func (p *Plan) Unhealthy() int { return p.Expected - p.Healthy }

// RemediationsAllowed returns how many more Machines may become unhealthy.
func (p *Plan) RemediationsAllowed() int {
	if !p.Allowed || p.Brake != nil {
		return 0
	}
	return p.Limit.Max - p.Unhealthy()
}

// Beginning reports whether Machines have not joined yet, and none has a failure.
func (p *Plan) Beginning() bool {
	return len(p.with(Starting))+len(p.with(Unknown)) > 0 && len(p.with(Unhealthy))+len(p.with(Failing))+len(p.with(Recovering)) == 0
}

// Next returns when the next finding changes if nothing else does; zero if none does.
func (p *Plan) Next() time.Time {
	var next time.Time
	for _, f := range p.Findings {
		if !f.Due.IsZero() && (next.IsZero() || f.Due.Before(next)) {
			next = f.Due
		}
	}
	return next
}

// Restricted reports whether Machines should be remediated, but are not. Remediation may also be disallowed without such Machines: if the
// limit is a range such as [3-5], and all Machines are healthy, or if they are only starting.
func (p *Plan) Restricted() bool {
	return len(p.with(Unhealthy)) > len(p.Remediable()) && (!p.Allowed || len(p.Due()) > 0)
}

// Due returns the Machines whose remediation has to begin, and that a Brake can hold back: unhealthy ones whose owner was not asked yet,
// and that no user annotated.
func (p *Plan) Due() []*clusterv1.Machine {
	var out []*clusterv1.Machine
	for _, f := range p.Findings {
		if f.Verdict == Unhealthy && !f.asked() &&
			(p.External || !condition.Has(f.Machine, clusterv1.MachineOwnerRemediatedV1Beta1Condition)) {
			out = append(out, f.Machine)
		}
	}
	return out
}

// asked reports whether a user asked for the remediation of an unhealthy Machine.
func (f Finding) asked() bool {
	return f.Reason == clusterv1.HasRemediateMachineAnnotationV1Beta1Reason
}

// remediates reports whether an unhealthy Machine may be remediated.
func (p *Plan) remediates(f Finding) bool { return p.Allowed && (p.Brake == nil || f.asked()) }

// Allowance returns condition RemediationAllowed of a plan whose counters are Observed.
func (p *Plan) Allowance() clusterv1.Condition {
	if p.Allowed && p.Brake != nil && p.Restricted() {
		return condition.False(clusterv1.RemediationAllowedV1Beta1Condition, clusterv1.ConditionSeverityWarning,
			clusterv1.FleetUnhealthyV1Beta1Reason, "%s", p.Brake.message())
	}
	if p.Allowed {
		return condition.True(clusterv1.RemediationAllowedV1Beta1Condition)
	}
	begin := "No Machine has to be remediated: "
	if p.Restricted() {
		begin = "No Machine is remediated: "
	}
	return condition.False(clusterv1.RemediationAllowedV1Beta1Condition, clusterv1.ConditionSeverityWarning,
		clusterv1.TooManyUnhealthyV1Beta1Reason, begin+"%d of %d Machines are not healthy, which is outside of %s",
		p.Unhealthy(), p.Expected, p.Limit.describe())
}

// Restriction returns the message of an event about a plan that is Restricted.
func (p *Plan) Restriction() string {
	text := p.Allowance().Message
	if p.Brake != nil {
		text += ": " + p.Brake.Count
	}
	return text
}

func (l Limit) describe() string {
	return fmt.Sprintf("%s (%d to %d Machines)", l.Field, l.Min, l.Max)
}

// Remediable returns the Machines that are remediated now: the unhealthy ones, if that is allowed.
func (p *Plan) Remediable() []*clusterv1.Machine {
	var out []*clusterv1.Machine
	for _, f := range p.Findings {
		if f.Verdict == Unhealthy && p.remediates(f) {
			out = append(out, f.Machine)
		}
	}
	return out
}

// Recovered returns the healthy Machines.
func (p *Plan) Recovered() []*clusterv1.Machine { return p.with(Healthy) }

func (p *Plan) with(v Verdict) []*clusterv1.Machine {
	var out []*clusterv1.Machine
	for _, f := range p.Findings {
		if f.Verdict == v {
			out = append(out, f.Machine)
		}
	}
	return out
}
