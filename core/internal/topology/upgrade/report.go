package upgrade

import (
	"fmt"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// namesShown is how many objects a message names.
const namesShown = 5

// Waiting says, as the reason and message of a condition, what of the topology is not in place because something
// else has to come first. ok is false when nothing waits.
func (p Plan) Waiting() (reason, message string, ok bool) {
	type rule struct {
		reason string
		what   string
		names  []string
		ending string
	}
	md, mp := p.MachineDeployments, p.MachinePools
	onHold := p.because()
	if p.ControlPlanePending {
		return clusterv1.TopologyReconciledControlPlaneUpgradePendingReason,
			fmt.Sprintf("Control plane rollout and upgrade to version %s on hold.%s", p.Version, onHold), true
	}
	upgrade := fmt.Sprintf("rollout and upgrade to version %s on hold.%s", p.Version, onHold)
	creation := fmt.Sprintf("creation with version %s on hold.%s", p.Version, onHold)
	deferred := fmt.Sprintf("upgrade to version %s deferred.%s", p.Version, onHold)
	for _, r := range []rule{
		{clusterv1.TopologyReconciledMachineDeploymentsUpgradePendingReason, "MachineDeployment(s)", md.Pending, upgrade},
		{clusterv1.TopologyReconciledMachineDeploymentsCreatePendingReason, "MachineDeployment(s) for topologies", md.Creating, creation},
		{clusterv1.TopologyReconciledMachineDeploymentsUpgradeDeferredReason, "MachineDeployment(s)", md.Deferred, deferred},
		{clusterv1.TopologyReconciledMachinePoolsUpgradePendingReason, "MachinePool(s)", mp.Pending, upgrade},
		{clusterv1.TopologyReconciledMachinePoolsCreatePendingReason, "MachinePool(s) for topologies", mp.Creating, creation},
		{clusterv1.TopologyReconciledMachinePoolsUpgradeDeferredReason, "MachinePool(s)", mp.Deferred, deferred},
	} {
		if len(r.names) > 0 {
			return r.reason, fmt.Sprintf("%s %s %s", r.what, listed(r.names), r.ending), true
		}
	}
	return "", "", false
}

// because says what is in progress; it is empty or starts with a space.
func (p Plan) because() string {
	var parts []string
	switch cp := p.controlPlane; {
	case !cp.Exists:
	case cp.Provisioning:
		parts = append(parts, "Control plane is completing initial provisioning")
	case cp.Upgrading, cp.Version != p.ControlPlane:
		// Starting and being on the way read the same, or the message would change with the next reconcile.
		parts = append(parts, fmt.Sprintf("Control plane is upgrading to version %s", p.ControlPlane))
	case cp.Scaling:
		parts = append(parts, "Control plane is reconciling desired replicas")
	}
	if names := p.MachineDeployments.Upgrading; len(names) > 0 {
		parts = append(parts, fmt.Sprintf("MachineDeployment(s) %s are upgrading", listed(names)))
	}
	if names := p.MachinePools.Upgrading; len(names) > 0 {
		parts = append(parts, fmt.Sprintf("MachinePool(s) %s are upgrading", listed(names)))
	}
	if len(parts) == 0 {
		return ""
	}
	return " " + strings.Join(parts, ". ")
}

func listed(names []string) string {
	if len(names) > namesShown {
		return strings.Join(names[:namesShown], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}
