package check

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/healthcheck/diagnosis"
)

// minStartupTimeout is the minimum of nodeStartupTimeoutSeconds, unless it is 0, which disables the timeout.
const minStartupTimeout = 30

// WorkersHealthCheck returns the health check of a class or topology of workers. How many Machines are remediated at a time is not part of
// it: it is of the MachineDeployment, also without a health check.
func WorkersHealthCheck(
	checks clusterv1.MachineHealthCheckChecks, remediation clusterv1.MachineDeploymentHealthCheckRemediation,
) clusterv1.ControlPlaneClassHealthCheck {
	return clusterv1.ControlPlaneClassHealthCheck{
		Checks:      checks,
		Remediation: clusterv1.MachineHealthCheckRemediation{TriggerIf: remediation.TriggerIf, TemplateRef: remediation.TemplateRef},
	}
}

// HealthCheck validates the definition of a MachineHealthCheck in a class or topology.
func HealthCheck(c *clusterv1.ControlPlaneClassHealthCheck, path *field.Path) field.ErrorList {
	errs := checks(&c.Checks, path.Child("checks"))
	trigger, at := &c.Remediation.TriggerIf, path.Child("remediation", "triggerIf")
	if most := trigger.UnhealthyLessThanOrEqualTo; most != nil {
		at := at.Child("unhealthyLessThanOrEqualTo")
		limit, err := intstr.GetScaledValueFromIntOrPercent(most, 100, false)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(at, most.String(), "must be a number or a percentage"))
		case limit < 0:
			errs = append(errs, field.Invalid(at, most.String(), "must not be negative"))
		}
	}
	if r := trigger.UnhealthyInRange; r != "" {
		if _, err := diagnosis.ParseRange(r); err != nil {
			errs = append(errs, field.Invalid(at.Child("unhealthyInRange"), r,
				"must be two numbers in brackets, the first not greater than the second, such as [3-5]"))
		}
	}
	return errs
}

func checks(c *clusterv1.MachineHealthCheckChecks, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(c.UnhealthyNodeConditions) == 0 && len(c.UnhealthyMachineConditions) == 0 && c.NodeStartupTimeoutSeconds == nil {
		errs = append(errs, field.Required(path.Child("unhealthyNodeConditions"),
			"at least one condition or nodeStartupTimeoutSeconds is required"))
	}
	if t := c.NodeStartupTimeoutSeconds; t != nil && *t != 0 && *t < minStartupTimeout {
		errs = append(errs, field.Invalid(path.Child("nodeStartupTimeoutSeconds"), *t,
			fmt.Sprintf("must be at least %d, or 0 to disable the timeout", minStartupTimeout)))
	}
	errs = append(errs, unhealthyNodeConditions(c.UnhealthyNodeConditions, path.Child("unhealthyNodeConditions"))...)
	return append(errs, unhealthyMachineConditions(c.UnhealthyMachineConditions, path.Child("unhealthyMachineConditions"))...)
}

// unhealthyNodeConditions validates the Node conditions. The CRD limits type and status to non-empty strings.
func unhealthyNodeConditions(conditions []clusterv1.UnhealthyNodeCondition, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, c := range conditions {
		switch c.Status {
		case corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown:
		default:
			errs = append(errs, field.NotSupported(path.Index(i).Child("status"), c.Status,
				[]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}))
		}
		if t := ptr.Deref(c.TimeoutSeconds, 0); t < 0 {
			errs = append(errs, field.Invalid(path.Index(i).Child("timeoutSeconds"), t, "must not be negative"))
		}
	}
	return errs
}

// unhealthyMachineConditions validates the conditions of Machines. The CRD limits type and status. It cannot exclude types by a rule,
// because it has no limit for the number of lists.
func unhealthyMachineConditions(conditions []clusterv1.UnhealthyMachineCondition, path *field.Path) field.ErrorList {
	results := []string{"Ready", "Available", "HealthCheckSucceeded", "OwnerRemediated", "ExternallyRemediated"}
	var errs field.ErrorList
	for i, c := range conditions {
		if slices.Contains(results, c.Type) {
			errs = append(errs, field.Invalid(path.Index(i).Child("type"), c.Type,
				"must not be one of: "+strings.Join(results, ", ")+": they depend on the health check"))
		}
		if t := ptr.Deref(c.TimeoutSeconds, 0); t < 0 {
			errs = append(errs, field.Invalid(path.Index(i).Child("timeoutSeconds"), t, "must not be negative"))
		}
	}
	return errs
}

// topologyCheck is the health check of a topology.
type topologyCheck struct {
	// enabled is nil if the topology leaves it to the class.
	enabled *bool
	own     clusterv1.ControlPlaneClassHealthCheck
}

func ofControlPlane(t *clusterv1.ControlPlaneTopologyHealthCheck) topologyCheck {
	return topologyCheck{t.Enabled, clusterv1.ControlPlaneClassHealthCheck{Checks: t.Checks, Remediation: t.Remediation}}
}

func ofDeployment(t *clusterv1.MachineDeploymentTopologyHealthCheck) topologyCheck {
	return topologyCheck{t.Enabled, WorkersHealthCheck(t.Checks, t.Remediation)}
}

// requiresClass reports whether a topology enables a MachineHealthCheck without a definition of its own, so that its class must
// have one.
func (c topologyCheck) requiresClass() bool { return ptr.Deref(c.enabled, false) && !c.own.IsDefined() }

// validate validates the health check of a topology. inClass reports whether its class defines one.
func (c topologyCheck) validate(inClass bool, path *field.Path) field.ErrorList {
	if c.own.IsDefined() {
		return HealthCheck(&c.own, path)
	}
	if c.requiresClass() && !inClass {
		return field.ErrorList{field.Forbidden(path.Child("enabled"), "no MachineHealthCheck is defined: define it here or in the ClusterClass")}
	}
	return nil
}
