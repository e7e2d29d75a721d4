package upgrade

import (
	"fmt"
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Upgrading returns reason and message of the metav1 condition of a Cluster whose version is not reached everywhere; ok is false if it is.
// The message has a line for the hooks that block, if there are any, and for each group of objects that upgrade or wait.
func (p Plan) Upgrading(controlPlaneKind, blocking string) (reason, message string, ok bool) {
	var lines []string
	if blocking != "" {
		lines = append(lines, "Following hooks are blocking upgrade: "+blocking)
	}
	lines = append(lines, p.controlPlaneLine(controlPlaneKind)...)
	lines = append(lines, p.MachineDeployments.lines("MachineDeployment", p.Version, "defer-upgrade")...)
	lines = append(lines, p.MachinePools.lines("MachinePool", p.Version, "topology.cluster.x-k8s.io/defer-upgrade")...)
	heading := "Cluster is upgrading to " + p.Version
	if len(lines) == 0 {
		heading = "Workers are upgrading to pinned versions"
	}
	lines = append(lines, p.MachineDeployments.own("MachineDeployment")...)
	lines = append(lines, p.MachinePools.own("MachinePool")...)
	if len(lines) == 0 {
		return "", "", false
	}
	lines = append(lines, p.MachineDeployments.creating("MachineDeployment")...)
	lines = append(lines, p.MachinePools.creating("MachinePool")...)
	reason = clusterv1.ClusterTopologyReconciledClusterUpgradingReason
	switch {
	case blocking != "" || p.ControlPlanePending && !p.stopped || p.isControlPlaneUpgrading():
	case p.MachineDeployments.onlyDeferred():
		reason = clusterv1.ClusterTopologyReconciledMachineDeploymentsUpgradeDeferredReason
	case p.MachinePools.onlyDeferred():
		reason = clusterv1.ClusterTopologyReconciledMachinePoolsUpgradeDeferredReason
	}
	const item = "\n  * "
	return reason, heading + item + strings.Join(lines, item), true
}

// isControlPlaneUpgrading reports whether the control plane is being upgraded, or is from now on.
func (p Plan) isControlPlaneUpgrading() bool {
	return p.Starts() || p.controlPlane.Exists && p.controlPlane.Upgrading
}

func (p Plan) controlPlaneLine(kind string) []string {
	switch pending := p.Pending(); {
	case p.isControlPlaneUpgrading():
		return []string{kind + " " + upgradingTo(p.ControlPlane, pending)}
	case p.ControlPlanePending:
		return []string{kind + " pending upgrade to version " + strings.Join(pending, ", ")}
	}
	return nil
}

// upgradingTo describes an upgrade to a version, and those that follow.
func upgradingTo(version string, pending []string) string {
	if len(pending) == 0 {
		return "upgrading to version " + version
	}
	return fmt.Sprintf("upgrading to version %s (%s pending)", version, strings.Join(pending, ", "))
}

// lines returns a line for the workers that upgrade, that wait, and whose upgrade is deferred.
func (s Sequence) lines(kind, version, annotation string) []string {
	steps, to := s.steps, s.upgradingTo
	if len(steps) == 0 {
		steps = []string{version}
	}
	if to == "" {
		to = version
	}
	var pending []string
	if slices.Contains(steps, to) {
		pending = after(steps, to)
	}
	var lines []string
	for _, group := range []struct {
		names []string
		state string
	}{
		{s.Upgrading, upgradingTo(to, pending)},
		{s.Pending, "pending upgrade to version " + strings.Join(steps, ", ")},
		{s.Deferred, fmt.Sprintf("upgrade to version %s deferred using %s or hold-upgrade-sequence annotations", steps[0], annotation)},
	} {
		if len(group.names) > 0 {
			lines = append(lines, named(kind, group.names)+" "+group.state)
		}
	}
	return lines
}

// own returns a line for pinned workers that wait for their own version.
func (s Sequence) own(kind string) []string {
	if len(s.PinnedPending) == 0 {
		return nil
	}
	return []string{named(kind, s.PinnedPending) + " pending upgrade to pinned version"}
}

// creating returns a line for workers that are created after the upgrade of the control plane.
func (s Sequence) creating(kind string) []string {
	if len(s.Creating) == 0 {
		return nil
	}
	return []string{named(kind, s.Creating) + " creation deferred while control plane upgrade is in progress"}
}

func (s Sequence) onlyDeferred() bool {
	return len(s.Deferred) > 0 && len(s.Upgrading)+len(s.Pending) == 0
}

func named(kind string, names []string) string {
	if len(names) > 1 {
		kind += "s"
	}
	return kind + " " + join(names)
}
