package core

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func machineHealthCheckUp(m *clusterv1beta1.MachineHealthCheck) *clusterv1.MachineHealthCheck {
	s, g := m.Status, m.Status.ObservedGeneration
	checks, remediation := healthCheckUp(&clusterv1beta1.MachineHealthCheckClass{
		UnhealthyConditions: m.Spec.UnhealthyConditions,
		MaxUnhealthy:        m.Spec.MaxUnhealthy,
		UnhealthyRange:      m.Spec.UnhealthyRange,
		NodeStartupTimeout:  m.Spec.NodeStartupTimeout,
		RemediationTemplate: m.Spec.RemediationTemplate,
	})
	hub := &clusterv1.MachineHealthCheck{
		ObjectMeta: m.ObjectMeta,
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: m.Spec.ClusterName, Selector: m.Spec.Selector, Checks: checks, Remediation: remediation,
		},
		Status: clusterv1.MachineHealthCheckStatus{
			ExpectedMachines:    reported(g, s.ExpectedMachines),
			CurrentHealthy:      reported(g, s.CurrentHealthy),
			RemediationsAllowed: reported(g, s.RemediationsAllowed),
			ObservedGeneration:  g,
			Targets:             s.Targets,
		},
	}
	if s.Conditions != nil {
		hub.SetV1Beta1Conditions(conditionsUp(s.Conditions))
	}
	hub.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(clusterv1.MachineHealthCheckKind))
	return hub
}

func machineHealthCheckDown(m *clusterv1.MachineHealthCheck) *clusterv1beta1.MachineHealthCheck {
	s := m.Status
	class := healthCheckDown(m.Spec.Checks, m.Spec.Remediation, m.Namespace)
	old := &clusterv1beta1.MachineHealthCheck{
		ObjectMeta: m.ObjectMeta,
		Spec: clusterv1beta1.MachineHealthCheckSpec{
			ClusterName:         m.Spec.ClusterName,
			Selector:            m.Spec.Selector,
			UnhealthyConditions: class.UnhealthyConditions,
			MaxUnhealthy:        class.MaxUnhealthy,
			UnhealthyRange:      class.UnhealthyRange,
			NodeStartupTimeout:  class.NodeStartupTimeout,
			RemediationTemplate: class.RemediationTemplate,
		},
		Status: clusterv1beta1.MachineHealthCheckStatus{
			ExpectedMachines:    ptr.Deref(s.ExpectedMachines, 0),
			CurrentHealthy:      ptr.Deref(s.CurrentHealthy, 0),
			RemediationsAllowed: ptr.Deref(s.RemediationsAllowed, 0),
			ObservedGeneration:  s.ObservedGeneration,
			Targets:             s.Targets,
			Conditions:          conditionsDown(m.GetV1Beta1Conditions()),
		},
	}
	old.SetGroupVersionKind(clusterv1beta1.GroupVersion.WithKind(clusterv1beta1.MachineHealthCheckKind))
	return old
}

// healthCheckUp converts a health check; nil is none.
func healthCheckUp(class *clusterv1beta1.MachineHealthCheckClass) (clusterv1.MachineHealthCheckChecks, clusterv1.MachineHealthCheckRemediation) {
	var checks clusterv1.MachineHealthCheckChecks
	var remediation clusterv1.MachineHealthCheckRemediation
	if class == nil {
		return checks, remediation
	}
	checks.NodeStartupTimeoutSeconds = seconds(class.NodeStartupTimeout)
	checks.UnhealthyNodeConditions = each(class.UnhealthyConditions, func(u clusterv1beta1.UnhealthyCondition) clusterv1.UnhealthyNodeCondition {
		return clusterv1.UnhealthyNodeCondition{Type: u.Type, Status: u.Status, TimeoutSeconds: seconds(&u.Timeout)}
	})
	remediation.TriggerIf.UnhealthyLessThanOrEqualTo = class.MaxUnhealthy
	remediation.TriggerIf.UnhealthyInRange = ptr.Deref(class.UnhealthyRange, "")
	if r := class.RemediationTemplate; r != nil {
		remediation.TemplateRef = clusterv1.MachineHealthCheckRemediationTemplateReference{APIVersion: r.APIVersion, Kind: r.Kind, Name: r.Name}
	}
	return checks, remediation
}

// healthCheckDown is the opposite of healthCheckUp.
func healthCheckDown(
	checks clusterv1.MachineHealthCheckChecks, remediation clusterv1.MachineHealthCheckRemediation, namespace string,
) clusterv1beta1.MachineHealthCheckClass {
	return clusterv1beta1.MachineHealthCheckClass{
		UnhealthyConditions: each(checks.UnhealthyNodeConditions, func(u clusterv1.UnhealthyNodeCondition) clusterv1beta1.UnhealthyCondition {
			return clusterv1beta1.UnhealthyCondition{
				Type: u.Type, Status: u.Status, Timeout: ptr.Deref(duration(u.TimeoutSeconds), metav1.Duration{}),
			}
		}),
		MaxUnhealthy:        remediation.TriggerIf.UnhealthyLessThanOrEqualTo,
		UnhealthyRange:      optional(remediation.TriggerIf.UnhealthyInRange),
		NodeStartupTimeout:  duration(checks.NodeStartupTimeoutSeconds),
		RemediationTemplate: templateReferenceDown(&remediation.TemplateRef, namespace),
	}
}

// templateReferenceDown adds the namespace to a reference that has a version.
func templateReferenceDown(r interface {
	IsDefined() bool
	ToObjectReference(namespace string) *corev1.ObjectReference
}, namespace string) *corev1.ObjectReference {
	if !r.IsDefined() {
		return nil
	}
	return r.ToObjectReference(namespace)
}
