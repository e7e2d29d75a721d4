package check

import (
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Unattended lists features of classes and topologies that this manager does not implement. They are accepted, because
// manifests that use them must stay valid, with warnings and conditions for users.
type Unattended struct {
	// HealthChecks are created as MachineHealthChecks, but no Machines are remediated.
	HealthChecks bool
	// Extensions are not called, neither for external patches nor for hooks.
	Extensions bool
}

const checksUnattended = "MachineHealthChecks are created, but this release does not remediate unhealthy Machines"

// Class returns warnings about what a class uses of it.
func (u Unattended) Class(class *clusterv1.ClusterClass) []string {
	var out []string
	if u.HealthChecks {
		if class.Spec.ControlPlane.MachineHealthCheck != nil {
			out = append(out, "spec.controlPlane.machineHealthCheck: "+checksUnattended)
		}
		for i := range class.Spec.Workers.MachineDeployments {
			if class.Spec.Workers.MachineDeployments[i].MachineHealthCheck != nil {
				out = append(out, fmt.Sprintf("spec.workers.machineDeployments[%d].machineHealthCheck: %s", i, checksUnattended))
			}
		}
	}
	if !u.Extensions {
		return out
	}
	for i := range class.Spec.Patches {
		if class.Spec.Patches[i].External != nil {
			out = append(out, fmt.Sprintf("spec.patches[%d].external: this release does not call runtime extensions: Clusters of this class will not be reconciled", i))
		}
	}
	return out
}

// Topology returns warnings about what a topology uses of it, not counting what its class defines.
func (u Unattended) Topology(t *clusterv1.Topology) []string {
	if !u.HealthChecks {
		return nil
	}
	var out []string
	if enablesCheck(t.ControlPlane.MachineHealthCheck) {
		out = append(out, "spec.topology.controlPlane.machineHealthCheck: "+checksUnattended)
	}
	if t.Workers == nil {
		return out
	}
	for i := range t.Workers.MachineDeployments {
		if enablesCheck(t.Workers.MachineDeployments[i].MachineHealthCheck) {
			out = append(out, fmt.Sprintf("spec.topology.workers.machineDeployments[%d].machineHealthCheck: %s", i, checksUnattended))
		}
	}
	return out
}

func enablesCheck(c *clusterv1.MachineHealthCheckTopology) bool {
	return c != nil && (c.Enable == nil || *c.Enable)
}

// Objects returns messages for the Cluster's condition, given whether its topology has MachineHealthChecks.
func (u Unattended) Objects(checks bool) []string {
	if u.HealthChecks && checks {
		return []string{checksUnattended}
	}
	return nil
}
