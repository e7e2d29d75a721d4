package core

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func clusterClassUp(class *clusterv1beta1.ClusterClass) *clusterv1.ClusterClass {
	spec, s := class.Spec, class.Status
	hub := &clusterv1.ClusterClass{
		ObjectMeta: class.ObjectMeta,
		Spec: clusterv1.ClusterClassSpec{
			Infrastructure: clusterv1.InfrastructureClass{TemplateRef: templateUpOf(spec.Infrastructure.Ref)},
			ControlPlane:   controlPlaneClassUp(spec.ControlPlane),
			Workers: clusterv1.WorkersClass{
				MachineDeployments: each(spec.Workers.MachineDeployments, machineDeploymentClassUp),
				MachinePools:       each(spec.Workers.MachinePools, machinePoolClassUp),
			},
			Variables: each(spec.Variables, classVariableUp),
			Patches:   each(spec.Patches, patchUp),
		},
		Status: clusterv1.ClusterClassStatus{
			Variables: each(s.Variables, statusVariableUp), ObservedGeneration: s.ObservedGeneration,
		},
	}
	if s.Conditions != nil {
		hub.SetV1Beta1Conditions(conditionsUp(s.Conditions))
	}
	hub.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(clusterv1.ClusterClassKind))
	return hub
}

func clusterClassDown(class *clusterv1.ClusterClass) *clusterv1beta1.ClusterClass {
	spec, s, namespace := class.Spec, class.Status, class.Namespace
	old := &clusterv1beta1.ClusterClass{
		ObjectMeta: class.ObjectMeta,
		Spec: clusterv1beta1.ClusterClassSpec{
			Infrastructure: localTemplate(spec.Infrastructure.TemplateRef, namespace),
			ControlPlane:   controlPlaneClassDown(spec.ControlPlane, namespace),
			Workers: clusterv1beta1.WorkersClass{
				MachineDeployments: each(spec.Workers.MachineDeployments, func(m clusterv1.MachineDeploymentClass) clusterv1beta1.MachineDeploymentClass {
					return machineDeploymentClassDown(m, namespace)
				}),
				MachinePools: each(spec.Workers.MachinePools, func(m clusterv1.MachinePoolClass) clusterv1beta1.MachinePoolClass {
					return machinePoolClassDown(m, namespace)
				}),
			},
			Variables: each(spec.Variables, classVariableDown),
			Patches:   each(spec.Patches, patchDown),
		},
		Status: clusterv1beta1.ClusterClassStatus{
			Variables:          each(s.Variables, statusVariableDown),
			Conditions:         conditionsDown(class.GetV1Beta1Conditions()),
			ObservedGeneration: s.ObservedGeneration,
		},
	}
	old.SetGroupVersionKind(clusterv1beta1.GroupVersion.WithKind(clusterv1beta1.ClusterClassKind))
	return old
}

// templateUpOf drops the namespace of a reference.
func templateUpOf(r *corev1.ObjectReference) clusterv1.ClusterClassTemplateReference {
	if r == nil {
		return clusterv1.ClusterClassTemplateReference{}
	}
	return clusterv1.ClusterClassTemplateReference{APIVersion: r.APIVersion, Kind: r.Kind, Name: r.Name}
}

func localTemplate(r clusterv1.ClusterClassTemplateReference, namespace string) clusterv1beta1.LocalObjectTemplate {
	return clusterv1beta1.LocalObjectTemplate{Ref: templateReferenceDown(&r, namespace)}
}

func controlPlaneClassUp(c clusterv1beta1.ControlPlaneClass) clusterv1.ControlPlaneClass {
	checks, remediation := healthCheckUp(c.MachineHealthCheck)
	hub := clusterv1.ControlPlaneClass{
		Metadata:    metaUp(c.Metadata),
		TemplateRef: templateUpOf(c.Ref),
		HealthCheck: clusterv1.ControlPlaneClassHealthCheck{Checks: checks, Remediation: remediation},
		Deletion: clusterv1.MachineDeletionSpec{
			NodeDrainTimeoutSeconds:        seconds(c.NodeDrainTimeout),
			NodeVolumeDetachTimeoutSeconds: seconds(c.NodeVolumeDetachTimeout),
			NodeDeletionTimeoutSeconds:     seconds(c.NodeDeletionTimeout),
		},
	}
	if c.MachineInfrastructure != nil {
		hub.MachineInfrastructure.TemplateRef = templateUpOf(c.MachineInfrastructure.Ref)
	}
	if c.NamingStrategy != nil {
		hub.Naming.Template = ptr.Deref(c.NamingStrategy.Template, "")
	}
	return hub
}

func controlPlaneClassDown(c clusterv1.ControlPlaneClass, namespace string) clusterv1beta1.ControlPlaneClass {
	old := clusterv1beta1.ControlPlaneClass{
		Metadata:                metaDown(c.Metadata),
		LocalObjectTemplate:     localTemplate(c.TemplateRef, namespace),
		NodeDrainTimeout:        duration(c.Deletion.NodeDrainTimeoutSeconds),
		NodeVolumeDetachTimeout: duration(c.Deletion.NodeVolumeDetachTimeoutSeconds),
		NodeDeletionTimeout:     duration(c.Deletion.NodeDeletionTimeoutSeconds),
	}
	if c.HealthCheck.IsDefined() {
		old.MachineHealthCheck = ptr.To(healthCheckDown(c.HealthCheck.Checks, c.HealthCheck.Remediation, namespace))
	}
	if c.MachineInfrastructure.TemplateRef.IsDefined() {
		old.MachineInfrastructure = ptr.To(localTemplate(c.MachineInfrastructure.TemplateRef, namespace))
	}
	if c.Naming.Template != "" {
		old.NamingStrategy = &clusterv1beta1.ControlPlaneClassNamingStrategy{Template: &c.Naming.Template}
	}
	return old
}

func machineDeploymentClassUp(m clusterv1beta1.MachineDeploymentClass) clusterv1.MachineDeploymentClass {
	checks, remediation := healthCheckUp(m.MachineHealthCheck)
	strategy, order := strategyUp(m.Strategy)
	hub := clusterv1.MachineDeploymentClass{
		Metadata:       metaUp(m.Template.Metadata),
		Class:          m.Class,
		Bootstrap:      clusterv1.MachineDeploymentClassBootstrapTemplate{TemplateRef: templateUpOf(m.Template.Bootstrap.Ref)},
		Infrastructure: clusterv1.MachineDeploymentClassInfrastructureTemplate{TemplateRef: templateUpOf(m.Template.Infrastructure.Ref)},
		HealthCheck:    clusterv1.MachineDeploymentClassHealthCheck{Checks: checks, Remediation: workerRemediationUp(remediation)},
		FailureDomain:  ptr.Deref(m.FailureDomain, ""),
		Deletion: clusterv1.MachineDeploymentClassMachineDeletionSpec{
			Order:                          order,
			NodeDrainTimeoutSeconds:        seconds(m.NodeDrainTimeout),
			NodeVolumeDetachTimeoutSeconds: seconds(m.NodeVolumeDetachTimeout),
			NodeDeletionTimeoutSeconds:     seconds(m.NodeDeletionTimeout),
		},
		MinReadySeconds: m.MinReadySeconds,
		Rollout:         clusterv1.MachineDeploymentClassRolloutSpec{Strategy: strategy},
	}
	if m.NamingStrategy != nil {
		hub.Naming.Template = ptr.Deref(m.NamingStrategy.Template, "")
	}
	return hub
}

func machineDeploymentClassDown(m clusterv1.MachineDeploymentClass, namespace string) clusterv1beta1.MachineDeploymentClass {
	old := clusterv1beta1.MachineDeploymentClass{
		Class: m.Class,
		Template: clusterv1beta1.MachineDeploymentClassTemplate{
			Metadata:       metaDown(m.Metadata),
			Bootstrap:      localTemplate(m.Bootstrap.TemplateRef, namespace),
			Infrastructure: localTemplate(m.Infrastructure.TemplateRef, namespace),
		},
		FailureDomain:           optional(m.FailureDomain),
		NodeDrainTimeout:        duration(m.Deletion.NodeDrainTimeoutSeconds),
		NodeVolumeDetachTimeout: duration(m.Deletion.NodeVolumeDetachTimeoutSeconds),
		NodeDeletionTimeout:     duration(m.Deletion.NodeDeletionTimeoutSeconds),
		MinReadySeconds:         m.MinReadySeconds,
		Strategy:                strategyDown(m.Rollout.Strategy, m.Deletion.Order),
	}
	if m.HealthCheck.IsDefined() {
		old.MachineHealthCheck = ptr.To(healthCheckDown(m.HealthCheck.Checks, workerRemediationDown(m.HealthCheck.Remediation), namespace))
	}
	if m.Naming.Template != "" {
		old.NamingStrategy = &clusterv1beta1.MachineDeploymentClassNamingStrategy{Template: &m.Naming.Template}
	}
	return old
}

func machinePoolClassUp(m clusterv1beta1.MachinePoolClass) clusterv1.MachinePoolClass {
	hub := clusterv1.MachinePoolClass{
		Metadata:       metaUp(m.Template.Metadata),
		Class:          m.Class,
		Bootstrap:      clusterv1.MachinePoolClassBootstrapTemplate{TemplateRef: templateUpOf(m.Template.Bootstrap.Ref)},
		Infrastructure: clusterv1.MachinePoolClassInfrastructureTemplate{TemplateRef: templateUpOf(m.Template.Infrastructure.Ref)},
		FailureDomains: m.FailureDomains,
		Deletion: clusterv1.MachineDeletionSpec{
			NodeDrainTimeoutSeconds:        seconds(m.NodeDrainTimeout),
			NodeVolumeDetachTimeoutSeconds: seconds(m.NodeVolumeDetachTimeout),
			NodeDeletionTimeoutSeconds:     seconds(m.NodeDeletionTimeout),
		},
		MinReadySeconds: m.MinReadySeconds,
	}
	if m.NamingStrategy != nil {
		hub.Naming.Template = ptr.Deref(m.NamingStrategy.Template, "")
	}
	return hub
}

func machinePoolClassDown(m clusterv1.MachinePoolClass, namespace string) clusterv1beta1.MachinePoolClass {
	old := clusterv1beta1.MachinePoolClass{
		Class: m.Class,
		Template: clusterv1beta1.MachinePoolClassTemplate{
			Metadata:       metaDown(m.Metadata),
			Bootstrap:      localTemplate(m.Bootstrap.TemplateRef, namespace),
			Infrastructure: localTemplate(m.Infrastructure.TemplateRef, namespace),
		},
		FailureDomains:          m.FailureDomains,
		NodeDrainTimeout:        duration(m.Deletion.NodeDrainTimeoutSeconds),
		NodeVolumeDetachTimeout: duration(m.Deletion.NodeVolumeDetachTimeoutSeconds),
		NodeDeletionTimeout:     duration(m.Deletion.NodeDeletionTimeoutSeconds),
		MinReadySeconds:         m.MinReadySeconds,
	}
	if m.Naming.Template != "" {
		old.NamingStrategy = &clusterv1beta1.MachinePoolClassNamingStrategy{Template: &m.Naming.Template}
	}
	return old
}
