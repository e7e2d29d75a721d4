package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/desired"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/lifecycle"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/upgrade"
)

// versions decides which version each part gets now.
func (p *Planner) versions(
	ctx context.Context, cluster *clusterv1.Cluster, class *clusterv1.ClusterClass, current *desired.Current, hooks *hookCalls,
) (upgrade.Plan, error) {
	in, err := upgradeInput(cluster, current)
	if err != nil {
		return upgrade.Plan{}, err
	}
	if in.Chain, err = p.chain(ctx, cluster, class, in); err != nil {
		return upgrade.Plan{}, err
	}
	if !upToDate(in) || hooks.waitForCompletion() {
		if err := p.findUpgrading(ctx, cluster, current, &in); err != nil {
			return upgrade.Plan{}, err
		}
	}
	return hooks.versions(ctx, in)
}

// upgradeInput returns what the objects alone show. It does not set Upgrading of workers: see findUpgrading.
func upgradeInput(cluster *clusterv1.Cluster, current *desired.Current) (in upgrade.Input, err error) {
	in.Version, in.Step = cluster.Spec.Topology.Version, lifecycle.Step(cluster)
	if in.Concurrency, err = concurrency(cluster); err != nil {
		return in, err
	}
	if in.ControlPlane, err = controlPlaneState(cluster, current); err != nil {
		return in, err
	}
	for _, t := range desired.RequestedBy(cluster) {
		w := workersState(t)
		if object, ok := current.Workers[t.WorkersID]; ok {
			w.Exists, w.Object, w.Version = true, object.Object().GetName(), object.Template().Spec.Version
		}
		if t.Kind == desired.MachinePoolKind {
			in.MachinePools = append(in.MachinePools, w)
		} else {
			in.MachineDeployments = append(in.MachineDeployments, w)
		}
	}
	return in, nil
}

// upToDate reports whether every part has its version in the topology in its spec. Then the versions of its machines only matter for a
// hook that waits for the end of the upgrade.
func upToDate(in upgrade.Input) bool {
	differs := func(w upgrade.Workers) bool { return w.Exists && w.Version != cmp.Or(w.Pinned, in.Version) }
	return (!in.ControlPlane.Exists || in.ControlPlane.Version == in.Version) &&
		!slices.ContainsFunc(in.MachineDeployments, differs) && !slices.ContainsFunc(in.MachinePools, differs)
}

// findUpgrading sets Upgrading of workers that have machines with another version than their spec.
func (p *Planner) findUpgrading(ctx context.Context, cluster *clusterv1.Cluster, current *desired.Current, in *upgrade.Input) error {
	var machines clusterv1.MachineList
	if err := p.Reader.List(ctx, &machines, Labeled(cluster)...); err != nil {
		return fmt.Errorf("listing Machines: %w", err)
	}
	for i := range in.MachineDeployments {
		w := &in.MachineDeployments[i]
		w.Upgrading = w.Exists && slices.ContainsFunc(machines.Items, func(m clusterv1.Machine) bool {
			return m.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel] == w.TopologyName &&
				m.Spec.Version != "" && m.Spec.Version != w.Version
		})
	}
	if p.PoolVersions == nil {
		return nil
	}
	for i := range in.MachinePools {
		w := &in.MachinePools[i]
		if !w.Exists {
			continue
		}
		if err := p.findUpgradingPool(ctx, cluster,
			current.Workers[desired.WorkersID{Kind: desired.MachinePoolKind, Name: w.TopologyName}].Pool, w); err != nil {
			return err
		}
	}
	return nil
}

func workersState(requested desired.Requested) upgrade.Workers {
	_, deferred := requested.Metadata.Annotations[clusterv1.ClusterTopologyDeferUpgradeAnnotation]
	_, hold := requested.Metadata.Annotations[clusterv1.ClusterTopologyHoldUpgradeSequenceAnnotation]
	return upgrade.Workers{TopologyName: requested.Name, Deferred: deferred, Hold: hold, Pinned: requested.Version}
}

func concurrency(cluster *clusterv1.Cluster) (int, error) {
	value, ok := cluster.Annotations[clusterv1.ClusterTopologyUpgradeConcurrencyAnnotation]
	if !ok {
		return 1, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("annotation %s is %q: it must be an integer of at least 1",
			clusterv1.ClusterTopologyUpgradeConcurrencyAnnotation, value)
	}
	return n, nil
}

func controlPlaneState(cluster *clusterv1.Cluster, current *desired.Current) (state upgrade.ControlPlane, err error) {
	if current.ControlPlane == nil {
		return state, nil
	}
	state.Exists = true
	cp := current.Fields()
	version, err := cp.Version()
	if err != nil {
		return state, err
	}
	if version != nil {
		state.Version = *version
	}
	if state.Provisioning, err = cp.IsProvisioning(); err != nil {
		return state, err
	}
	if state.Upgrading, err = cp.IsUpgrading(); err != nil {
		return state, err
	}
	if cluster.Spec.Topology.ControlPlane.Replicas != nil {
		state.Scaling, err = cp.IsScaling()
	}
	return state, err
}
