package topology

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/upgrade"
)

// maxSteps is how many versions of an upgrade the status can have.
const maxSteps = 32

// stateUpgradePlan reports the versions that control plane and workers are still to get. The Cluster controller reports the other fields.
func stateUpgradePlan(cluster *clusterv1.Cluster, planned upgrade.Plan) {
	status := &cluster.Status
	if steps := stepsIn(planned.Pending()); len(steps) > 0 || status.ControlPlane != nil {
		if status.ControlPlane == nil {
			status.ControlPlane = &clusterv1.ClusterControlPlaneStatus{}
		}
		status.ControlPlane.UpgradePlan = steps
	}
	if steps := stepsIn(planned.PendingWorkers()); len(steps) > 0 || status.Workers != nil {
		if status.Workers == nil {
			status.Workers = &clusterv1.WorkersStatus{}
		}
		status.Workers.UpgradePlan = steps
	}
}

func stepsIn(versions []string) []clusterv1.UpgradePlanVersion {
	var steps []clusterv1.UpgradePlanVersion
	for _, version := range versions[:min(len(versions), maxSteps)] {
		steps = append(steps, clusterv1.UpgradePlanVersion{Version: version})
	}
	return steps
}
