package upgrade

import (
	"fmt"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// maxNames is how many objects a message lists.
const maxNames = 5

// Waiting returns the reason and message of a condition for the first part of the plan that has to wait: the control plane,
// then MachineDeployments, then MachinePools. ok is false if nothing waits.
func (p Plan) Waiting() (reason, message string, ok bool) {
	if p.ControlPlanePending {
		return clusterv1.TopologyReconciledControlPlaneUpgradePendingV1Beta1Reason,
			fmt.Sprintf("Control plane rollout and upgrade to version %s on hold.%s", p.Version, p.inProgress()), true
	}
	for _, w := range p.waits() {
		if len(w.names) > 0 {
			return w.reason, fmt.Sprintf("%s %s %s.%s", w.kind, join(w.names), w.state, p.inProgress()), true
		}
	}
	return "", "", false
}

// wait is a reason why workers have to wait, and which of them do.
type wait struct {
	reason string
	kind   string
	names  []string
	state  string
}

// waits returns all reasons, most important first. Those without names do not apply.
func (p Plan) waits() []wait {
	upgrade := fmt.Sprintf("rollout and upgrade to version %s on hold", p.Version)
	creation := fmt.Sprintf("creation with version %s on hold", p.Version)
	deferred := fmt.Sprintf("upgrade to version %s deferred", p.Version)
	const taken = "creation on hold until objects with the same name are deleted"
	const own = "upgrade to pinned version on hold"
	md, mp := p.MachineDeployments, p.MachinePools
	return []wait{
		{clusterv1.TopologyReconciledMachineDeploymentsUpgradePendingV1Beta1Reason, "MachineDeployment(s)", md.Pending, upgrade},
		{clusterv1.TopologyReconciledMachineDeploymentsUpgradePendingV1Beta1Reason, "MachineDeployment(s)", md.PinnedPending, own},
		{clusterv1.TopologyReconciledMachineDeploymentsCreatePendingV1Beta1Reason, "MachineDeployment(s) for topologies", md.Creating, creation},
		{clusterv1.TopologyReconciledMachineDeploymentsCreatePendingV1Beta1Reason, "MachineDeployment(s) for topologies", md.NameTaken, taken},
		{clusterv1.TopologyReconciledMachineDeploymentsUpgradeDeferredV1Beta1Reason, "MachineDeployment(s)", md.Deferred, deferred},
		{clusterv1.TopologyReconciledMachinePoolsUpgradePendingV1Beta1Reason, "MachinePool(s)", mp.Pending, upgrade},
		{clusterv1.TopologyReconciledMachinePoolsUpgradePendingV1Beta1Reason, "MachinePool(s)", mp.PinnedPending, own},
		{clusterv1.TopologyReconciledMachinePoolsCreatePendingV1Beta1Reason, "MachinePool(s) for topologies", mp.Creating, creation},
		{clusterv1.TopologyReconciledMachinePoolsCreatePendingV1Beta1Reason, "MachinePool(s) for topologies", mp.NameTaken, taken},
		{clusterv1.TopologyReconciledMachinePoolsUpgradeDeferredV1Beta1Reason, "MachinePool(s)", mp.Deferred, deferred},
	}
}

// inProgress returns sentences about what is in progress, each after a space; "" if nothing is.
func (p Plan) inProgress() string {
	var sentences []string
	if s := p.controlPlaneProgress(); s != "" {
		sentences = append(sentences, s)
	}
	if names := p.MachineDeployments.allUpgrading(); len(names) > 0 {
		sentences = append(sentences, fmt.Sprintf("MachineDeployment(s) %s are upgrading", join(names)))
	}
	unreachable := p.MachinePools.Unreachable
	known := slices.DeleteFunc(p.MachinePools.allUpgrading(), func(name string) bool { return slices.Contains(unreachable, name) })
	if len(known) > 0 {
		sentences = append(sentences, fmt.Sprintf("MachinePool(s) %s are upgrading", join(known)))
	}
	if len(unreachable) > 0 {
		sentences = append(sentences, fmt.Sprintf("MachinePool(s) %s count as upgrading until the versions of their Nodes can be read: "+
			"the workload cluster is unreachable", join(unreachable)))
	}
	if len(sentences) == 0 {
		return ""
	}
	return " " + strings.Join(sentences, ". ")
}

// allUpgrading returns the sorted names of all objects that are being upgraded.
func (s Sequence) allUpgrading() []string {
	return slices.Sorted(slices.Values(slices.Concat(s.Upgrading, s.PinnedUpgrading)))
}

func (p Plan) controlPlaneProgress() string {
	switch cp := p.controlPlane; {
	case !cp.Exists:
	case cp.Provisioning:
		return "Control plane is completing initial provisioning"
	case cp.Upgrading, cp.Version != p.ControlPlane:
		// The message is the same for an upgrade that starts now: otherwise it would change with the next reconcile.
		return fmt.Sprintf("Control plane is upgrading to version %s", p.ControlPlane)
	case cp.Scaling:
		return "Control plane is reconciling desired replicas"
	}
	return ""
}

// join lists at most maxNames names.
func join(names []string) string {
	if len(names) > maxNames {
		return strings.Join(names[:maxNames], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}
