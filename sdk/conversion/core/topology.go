package core

import (
	"k8s.io/utils/ptr"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func topologyUp(t *clusterv1beta1.Topology) clusterv1.Topology {
	if t == nil {
		return clusterv1.Topology{}
	}
	checks, remediation := topologyHealthCheckUp(t.ControlPlane.MachineHealthCheck)
	hub := clusterv1.Topology{
		ClassRef: clusterv1.ClusterClassRef{Name: t.Class},
		Version:  t.Version,
		ControlPlane: clusterv1.ControlPlaneTopology{
			Metadata:    metaUp(t.ControlPlane.Metadata),
			Replicas:    t.ControlPlane.Replicas,
			HealthCheck: clusterv1.ControlPlaneTopologyHealthCheck{Enabled: enabledUp(t.ControlPlane.MachineHealthCheck), Checks: checks, Remediation: remediation},
			Deletion: clusterv1.MachineDeletionSpec{
				NodeDrainTimeoutSeconds:        seconds(t.ControlPlane.NodeDrainTimeout),
				NodeVolumeDetachTimeoutSeconds: seconds(t.ControlPlane.NodeVolumeDetachTimeout),
				NodeDeletionTimeoutSeconds:     seconds(t.ControlPlane.NodeDeletionTimeout),
			},
		},
		Variables: variablesUp(t.Variables),
	}
	if v := t.ControlPlane.Variables; v != nil {
		hub.ControlPlane.Variables.Overrides = variablesUp(v.Overrides)
	}
	if t.Workers != nil {
		hub.Workers.MachineDeployments = each(t.Workers.MachineDeployments, machineDeploymentTopologyUp)
		hub.Workers.MachinePools = each(t.Workers.MachinePools, machinePoolTopologyUp)
	}
	return hub
}

func topologyDown(t clusterv1.Topology, namespace string) *clusterv1beta1.Topology {
	if !t.IsDefined() {
		return nil
	}
	check := t.ControlPlane.HealthCheck
	old := &clusterv1beta1.Topology{
		Class:   t.ClassRef.Name,
		Version: t.Version,
		ControlPlane: clusterv1beta1.ControlPlaneTopology{
			Metadata:                metaDown(t.ControlPlane.Metadata),
			Replicas:                t.ControlPlane.Replicas,
			MachineHealthCheck:      topologyHealthCheckDown(check.Enabled, check.Checks, check.Remediation, namespace),
			NodeDrainTimeout:        duration(t.ControlPlane.Deletion.NodeDrainTimeoutSeconds),
			NodeVolumeDetachTimeout: duration(t.ControlPlane.Deletion.NodeVolumeDetachTimeoutSeconds),
			NodeDeletionTimeout:     duration(t.ControlPlane.Deletion.NodeDeletionTimeoutSeconds),
		},
		Variables: variablesDown(t.Variables),
	}
	if o := t.ControlPlane.Variables.Overrides; o != nil {
		old.ControlPlane.Variables = &clusterv1beta1.ControlPlaneVariables{Overrides: variablesDown(o)}
	}
	if isSet(t.Workers) {
		old.Workers = &clusterv1beta1.WorkersTopology{
			MachineDeployments: each(t.Workers.MachineDeployments, func(m clusterv1.MachineDeploymentTopology) clusterv1beta1.MachineDeploymentTopology {
				return machineDeploymentTopologyDown(m, namespace)
			}),
			MachinePools: each(t.Workers.MachinePools, machinePoolTopologyDown),
		}
	}
	return old
}

func machineDeploymentTopologyUp(m clusterv1beta1.MachineDeploymentTopology) clusterv1.MachineDeploymentTopology {
	strategy, order := strategyUp(m.Strategy)
	checks, remediation := topologyHealthCheckUp(m.MachineHealthCheck)
	hub := clusterv1.MachineDeploymentTopology{
		Metadata:      metaUp(m.Metadata),
		Class:         m.Class,
		Name:          m.Name,
		FailureDomain: ptr.Deref(m.FailureDomain, ""),
		Replicas:      m.Replicas,
		HealthCheck: clusterv1.MachineDeploymentTopologyHealthCheck{
			Enabled: enabledUp(m.MachineHealthCheck), Checks: checks, Remediation: workerRemediationUp(remediation),
		},
		Deletion: clusterv1.MachineDeploymentClassMachineDeletionSpec{
			Order:                          order,
			NodeDrainTimeoutSeconds:        seconds(m.NodeDrainTimeout),
			NodeVolumeDetachTimeoutSeconds: seconds(m.NodeVolumeDetachTimeout),
			NodeDeletionTimeoutSeconds:     seconds(m.NodeDeletionTimeout),
		},
		MinReadySeconds: m.MinReadySeconds,
		Rollout:         clusterv1.MachineDeploymentRolloutSpec{Strategy: strategy},
	}
	if m.Variables != nil {
		hub.Variables.Overrides = variablesUp(m.Variables.Overrides)
	}
	return hub
}

func machineDeploymentTopologyDown(m clusterv1.MachineDeploymentTopology, namespace string) clusterv1beta1.MachineDeploymentTopology {
	check := m.HealthCheck
	old := clusterv1beta1.MachineDeploymentTopology{
		Metadata:                metaDown(m.Metadata),
		Class:                   m.Class,
		Name:                    m.Name,
		FailureDomain:           optional(m.FailureDomain),
		Replicas:                m.Replicas,
		MachineHealthCheck:      topologyHealthCheckDown(check.Enabled, check.Checks, workerRemediationDown(check.Remediation), namespace),
		NodeDrainTimeout:        duration(m.Deletion.NodeDrainTimeoutSeconds),
		NodeVolumeDetachTimeout: duration(m.Deletion.NodeVolumeDetachTimeoutSeconds),
		NodeDeletionTimeout:     duration(m.Deletion.NodeDeletionTimeoutSeconds),
		MinReadySeconds:         m.MinReadySeconds,
		Strategy:                strategyDown(m.Rollout.Strategy, m.Deletion.Order),
	}
	if m.Variables.Overrides != nil {
		old.Variables = &clusterv1beta1.MachineDeploymentVariables{Overrides: variablesDown(m.Variables.Overrides)}
	}
	return old
}

func machinePoolTopologyUp(m clusterv1beta1.MachinePoolTopology) clusterv1.MachinePoolTopology {
	hub := clusterv1.MachinePoolTopology{
		Metadata:       metaUp(m.Metadata),
		Class:          m.Class,
		Name:           m.Name,
		FailureDomains: m.FailureDomains,
		Deletion: clusterv1.MachineDeletionSpec{
			NodeDrainTimeoutSeconds:        seconds(m.NodeDrainTimeout),
			NodeVolumeDetachTimeoutSeconds: seconds(m.NodeVolumeDetachTimeout),
			NodeDeletionTimeoutSeconds:     seconds(m.NodeDeletionTimeout),
		},
		MinReadySeconds: m.MinReadySeconds,
		Replicas:        m.Replicas,
	}
	if m.Variables != nil {
		hub.Variables.Overrides = variablesUp(m.Variables.Overrides)
	}
	return hub
}

func machinePoolTopologyDown(m clusterv1.MachinePoolTopology) clusterv1beta1.MachinePoolTopology {
	old := clusterv1beta1.MachinePoolTopology{
		Metadata:                metaDown(m.Metadata),
		Class:                   m.Class,
		Name:                    m.Name,
		FailureDomains:          m.FailureDomains,
		NodeDrainTimeout:        duration(m.Deletion.NodeDrainTimeoutSeconds),
		NodeVolumeDetachTimeout: duration(m.Deletion.NodeVolumeDetachTimeoutSeconds),
		NodeDeletionTimeout:     duration(m.Deletion.NodeDeletionTimeoutSeconds),
		MinReadySeconds:         m.MinReadySeconds,
		Replicas:                m.Replicas,
	}
	if m.Variables.Overrides != nil {
		old.Variables = &clusterv1beta1.MachinePoolVariables{Overrides: variablesDown(m.Variables.Overrides)}
	}
	return old
}

func enabledUp(t *clusterv1beta1.MachineHealthCheckTopology) *bool {
	if t == nil {
		return nil
	}
	return t.Enable
}

func topologyHealthCheckUp(
	t *clusterv1beta1.MachineHealthCheckTopology,
) (clusterv1.MachineHealthCheckChecks, clusterv1.MachineHealthCheckRemediation) {
	if t == nil {
		return healthCheckUp(nil)
	}
	return healthCheckUp(&t.MachineHealthCheckClass)
}

func topologyHealthCheckDown(
	enabled *bool, checks clusterv1.MachineHealthCheckChecks, remediation clusterv1.MachineHealthCheckRemediation, namespace string,
) *clusterv1beta1.MachineHealthCheckTopology {
	if enabled == nil && !isSet(checks) && !isSet(remediation) {
		return nil
	}
	return &clusterv1beta1.MachineHealthCheckTopology{
		Enable: enabled, MachineHealthCheckClass: healthCheckDown(checks, remediation, namespace),
	}
}

func workerRemediationUp(r clusterv1.MachineHealthCheckRemediation) clusterv1.MachineDeploymentHealthCheckRemediation {
	return clusterv1.MachineDeploymentHealthCheckRemediation{TriggerIf: r.TriggerIf, TemplateRef: r.TemplateRef}
}

func workerRemediationDown(r clusterv1.MachineDeploymentHealthCheckRemediation) clusterv1.MachineHealthCheckRemediation {
	return clusterv1.MachineHealthCheckRemediation{TriggerIf: r.TriggerIf, TemplateRef: r.TemplateRef}
}

func variablesUp(variables []clusterv1beta1.ClusterVariable) []clusterv1.ClusterVariable {
	return each(variables, func(v clusterv1beta1.ClusterVariable) clusterv1.ClusterVariable {
		return clusterv1.ClusterVariable{Name: v.Name, Value: v.Value}
	})
}

func variablesDown(variables []clusterv1.ClusterVariable) []clusterv1beta1.ClusterVariable {
	return each(variables, func(v clusterv1.ClusterVariable) clusterv1beta1.ClusterVariable {
		return clusterv1beta1.ClusterVariable{Name: v.Name, Value: v.Value}
	})
}
