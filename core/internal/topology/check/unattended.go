package check

import (
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Unattended is what classes and topologies may contain although nothing acts on it in this manager. It is accepted,
// because manifests that have it must stay valid, and whoever applies it is told.
type Unattended struct {
	// MachinePools: they are created, and nothing makes machines for them.
	MachinePools bool
	// HealthChecks: MachineHealthChecks are created, and nothing checks Machines.
	HealthChecks bool
	// Extensions: nothing calls runtime extensions, for external patches or hooks.
	Extensions bool
}

const (
	poolsUnattended  = "MachinePools are created, but nothing makes machines for them in this release"
	checksUnattended = "MachineHealthChecks are created, but nothing acts on them in this release: unhealthy Machines are not replaced"
)

// Class says what of a class nothing acts on.
func (u Unattended) Class(class *clusterv1.ClusterClass) []string {
	var out []string
	if u.MachinePools && len(class.Spec.Workers.MachinePools) > 0 {
		out = append(out, "spec.workers.machinePools: "+poolsUnattended)
	}
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
			out = append(out, fmt.Sprintf("spec.patches[%d].external: nothing calls runtime extensions in this release: Clusters of this class will not be reconciled", i))
		}
	}
	return out
}

// Topology says what of a topology nothing acts on, apart from what it takes over from its class.
func (u Unattended) Topology(t *clusterv1.Topology) []string {
	var out []string
	if u.MachinePools && t.Workers != nil && len(t.Workers.MachinePools) > 0 {
		out = append(out, "spec.topology.workers.machinePools: "+poolsUnattended)
	}
	if !u.HealthChecks {
		return out
	}
	if wantsCheck(t.ControlPlane.MachineHealthCheck) {
		out = append(out, "spec.topology.controlPlane.machineHealthCheck: "+checksUnattended)
	}
	if t.Workers == nil {
		return out
	}
	for i := range t.Workers.MachineDeployments {
		if wantsCheck(t.Workers.MachineDeployments[i].MachineHealthCheck) {
			out = append(out, fmt.Sprintf("spec.topology.workers.machineDeployments[%d].machineHealthCheck: %s", i, checksUnattended))
		}
	}
	return out
}

func wantsCheck(c *clusterv1.MachineHealthCheckTopology) bool {
	return c != nil && (c.Enable == nil || *c.Enable)
}

// Made says what of the objects of a topology nothing acts on, for the condition of the Cluster.
func (u Unattended) Made(pools, checks bool) []string {
	var out []string
	if u.MachinePools && pools {
		out = append(out, poolsUnattended)
	}
	if u.HealthChecks && checks {
		out = append(out, checksUnattended)
	}
	return out
}
