package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/core/internal/healthcheck/diagnosis"
)

// minStartupTimeout is the minimum of nodeStartupTimeout, unless it is 0, which disables the timeout.
const minStartupTimeout = 30 * time.Second

// HealthCheck validates the definition of a MachineHealthCheck in a class or topology.
func HealthCheck(c *clusterv1.MachineHealthCheckClass, namespace string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(c.UnhealthyConditions) == 0 && len(c.UnhealthyMachineConditions) == 0 && c.NodeStartupTimeout == nil {
		errs = append(errs, field.Required(path.Child("unhealthyConditions"), "at least one condition or nodeStartupTimeout is required"))
	}
	if t := c.NodeStartupTimeout; t != nil && t.Duration != 0 && t.Duration < minStartupTimeout {
		errs = append(errs, field.Invalid(path.Child("nodeStartupTimeout"), t.Duration.String(),
			fmt.Sprintf("must be at least %s, or 0 to disable the timeout", minStartupTimeout)))
	}
	errs = append(errs, unhealthyConditions(c.UnhealthyConditions, path.Child("unhealthyConditions"))...)
	errs = append(errs, unhealthyMachineConditions(c.UnhealthyMachineConditions, path.Child("unhealthyMachineConditions"))...)
	if c.MaxUnhealthy != nil {
		limit, err := intstr.GetScaledValueFromIntOrPercent(c.MaxUnhealthy, 100, false)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(path.Child("maxUnhealthy"), c.MaxUnhealthy.String(), "must be a number or a percentage"))
		case limit < 0:
			errs = append(errs, field.Invalid(path.Child("maxUnhealthy"), c.MaxUnhealthy.String(), "must not be negative"))
		}
	}
	if r := c.UnhealthyRange; r != nil {
		if _, err := diagnosis.ParseRange(*r); err != nil {
			errs = append(errs, field.Invalid(path.Child("unhealthyRange"), *r,
				"must be two numbers in brackets, the first not greater than the second, such as [3-5]"))
		}
	}
	if r := c.RemediationTemplate; r != nil && r.Namespace != "" && r.Namespace != namespace {
		errs = append(errs, field.Invalid(path.Child("remediationTemplate", "namespace"), r.Namespace,
			fmt.Sprintf("must be %q, the namespace of the object that refers to it", namespace)))
	}
	return errs
}

// unhealthyConditions validates the Node conditions. The CRD limits type and status to non-empty strings.
func unhealthyConditions(conditions []clusterv1.UnhealthyCondition, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, c := range conditions {
		switch c.Status {
		case corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown:
		default:
			errs = append(errs, field.NotSupported(path.Index(i).Child("status"), c.Status,
				[]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}))
		}
		if c.Timeout.Duration < 0 {
			errs = append(errs, field.Invalid(path.Index(i).Child("timeout"), c.Timeout.Duration.String(), "must not be negative"))
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
		if c.Timeout.Duration < 0 {
			errs = append(errs, field.Invalid(path.Index(i).Child("timeout"), c.Timeout.Duration.String(), "must not be negative"))
		}
	}
	return errs
}

// defined reports whether a topology has a definition of its own for its MachineHealthCheck.
func defined(c *clusterv1.MachineHealthCheckClass) bool {
	return len(c.UnhealthyConditions) > 0 || len(c.UnhealthyMachineConditions) > 0 || c.MaxUnhealthy != nil || c.UnhealthyRange != nil ||
		c.NodeStartupTimeout != nil || c.RemediationTemplate != nil
}

// requiresClass reports whether a topology enables a MachineHealthCheck without a definition of its own, so that its class must
// have one.
func requiresClass(t *clusterv1.MachineHealthCheckTopology) bool {
	return t != nil && t.Enable != nil && *t.Enable && !defined(&t.MachineHealthCheckClass)
}

// topologyHealthCheck validates the health check of a topology. inClass reports whether its class defines one.
func topologyHealthCheck(t *clusterv1.MachineHealthCheckTopology, inClass bool, namespace string, path *field.Path) field.ErrorList {
	if t == nil {
		return nil
	}
	if defined(&t.MachineHealthCheckClass) {
		return HealthCheck(&t.MachineHealthCheckClass, namespace, path)
	}
	if requiresClass(t) && !inClass {
		return field.ErrorList{field.Forbidden(path.Child("enable"), "no MachineHealthCheck is defined: define it here or in the ClusterClass")}
	}
	return nil
}
