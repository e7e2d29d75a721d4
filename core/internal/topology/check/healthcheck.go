package check

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// minStartupTimeout is the least time a Node can be given to come up. Zero switches the check off.
const minStartupTimeout = 30 * time.Second

// HealthCheck reports what is wrong with the definition of a MachineHealthCheck in a class or topology.
func HealthCheck(c *clusterv1.MachineHealthCheckClass, namespace string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(c.UnhealthyConditions) == 0 {
		errs = append(errs, field.Required(path.Child("unhealthyConditions"), "at least one condition of Nodes has to be named"))
	}
	if t := c.NodeStartupTimeout; t != nil && t.Duration != 0 && t.Duration < minStartupTimeout {
		errs = append(errs, field.Invalid(path.Child("nodeStartupTimeout"), t.Duration.String(), fmt.Sprintf("must be at least %s, or 0 to never give up on a Node", minStartupTimeout)))
	}
	if c.MaxUnhealthy != nil {
		if _, err := intstr.GetScaledValueFromIntOrPercent(c.MaxUnhealthy, 0, false); err != nil {
			errs = append(errs, field.Invalid(path.Child("maxUnhealthy"), c.MaxUnhealthy.String(), "must be a number or a percentage"))
		}
	}
	if r := c.RemediationTemplate; r != nil && r.Namespace != "" && r.Namespace != namespace {
		errs = append(errs, field.Invalid(path.Child("remediationTemplate", "namespace"), r.Namespace, fmt.Sprintf("must be %q, the namespace of the object that refers to it", namespace)))
	}
	return errs
}

// defined reports whether a topology says itself what its MachineHealthCheck looks like.
func defined(c *clusterv1.MachineHealthCheckClass) bool {
	return len(c.UnhealthyConditions) > 0 || c.MaxUnhealthy != nil || c.UnhealthyRange != nil ||
		c.NodeStartupTimeout != nil || c.RemediationTemplate != nil
}

// wanted reports whether a topology insists on a MachineHealthCheck that its class has to define.
func wanted(t *clusterv1.MachineHealthCheckTopology) bool {
	return t != nil && t.Enable != nil && *t.Enable && !defined(&t.MachineHealthCheckClass)
}

// topologyHealthCheck reports what is wrong with the health check of a topology, given whether its class
// has one.
func topologyHealthCheck(t *clusterv1.MachineHealthCheckTopology, inClass bool, namespace string, path *field.Path) field.ErrorList {
	if t == nil {
		return nil
	}
	if defined(&t.MachineHealthCheckClass) {
		return HealthCheck(&t.MachineHealthCheckClass, namespace, path)
	}
	if wanted(t) && !inClass {
		return field.ErrorList{field.Forbidden(path.Child("enable"), "there is no MachineHealthCheck to enable: define it here or in the ClusterClass")}
	}
	return nil
}
