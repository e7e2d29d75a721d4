package topology

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/desired"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/names"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/upgrade"
	"sigs.k8s.io/cluster-api/sdk/contract"
)

// current reads the current control plane and workers of a Cluster's topology.
func (p *Planner) current(ctx context.Context, cluster *clusterv1.Cluster, b *desired.Blueprint) (*desired.Current, error) {
	current := &desired.Current{
		MachineDeployments: map[string]*clusterv1.MachineDeployment{},
		MachinePools:       map[string]*clusterv1.MachinePool{},
		Terminating:        sets.New[string](),
	}
	name, err := names.ControlPlane(cluster, b.Class)
	if err != nil {
		return nil, err
	}
	kind := b.ControlPlane.GroupVersionKind()
	ref := &corev1.ObjectReference{APIVersion: kind.GroupVersion().String(), Kind: contract.KindOf(kind.Kind), Name: name}
	// At the version that is watched: another version has its own cache, which may lag behind.
	current.ControlPlane, err = p.External.Exact(ctx, ref, cluster.Namespace)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the control plane: %w", err)
	}
	return current, p.currentWorkers(ctx, cluster, current)
}

// currentWorkers adds MachineDeployments and MachinePools.
func (p *Planner) currentWorkers(ctx context.Context, cluster *clusterv1.Cluster, current *desired.Current) error {
	var deployments clusterv1.MachineDeploymentList
	if err := p.Reader.List(ctx, &deployments, p.ListOptions(cluster)...); err != nil {
		return fmt.Errorf("listing MachineDeployments: %w", err)
	}
	err := addWorkers("MachineDeployments", clusterv1.ClusterTopologyMachineDeploymentNameLabel, deployments.Items, current.Terminating, current.MachineDeployments)
	if err != nil {
		return err
	}
	var pools clusterv1.MachinePoolList
	if err := p.Reader.List(ctx, &pools, p.ListOptions(cluster)...); err != nil {
		return fmt.Errorf("listing MachinePools: %w", err)
	}
	return addWorkers("MachinePools", clusterv1.ClusterTopologyMachinePoolNameLabel, pools.Items, current.Terminating, current.MachinePools)
}

// addWorkers adds workers by their topology name, which is the value of the label, and the object names of workers that are
// being deleted to terminating.
func addWorkers[T any, W interface {
	*T
	client.Object
}](kind, label string, workers []T, terminating sets.Set[string], byTopologyName map[string]W) error {
	for i := range workers {
		w := W(&workers[i])
		if !w.GetDeletionTimestamp().IsZero() {
			terminating.Insert(w.GetName())
			continue
		}
		name := w.GetLabels()[label]
		if other := byTopologyName[name]; other != nil {
			return fmt.Errorf("%s %s and %s both have the topology name %q: delete one of them", kind, other.GetName(), w.GetName(), name)
		}
		byTopologyName[name] = w
	}
	return nil
}

// versions decides which version each part gets now.
func (p *Planner) versions(ctx context.Context, cluster *clusterv1.Cluster, current *desired.Current, held *holds) (upgrade.Plan, error) {
	in, err := upgradeInput(cluster, current)
	if err != nil {
		return upgrade.Plan{}, err
	}
	if !upToDate(in) || held.completion() {
		if err := p.findUpgrading(ctx, cluster, current, &in); err != nil {
			return upgrade.Plan{}, err
		}
	}
	return held.versions(ctx, in)
}

// upgradeInput returns what the objects alone show. It does not set Upgrading of workers: see findUpgrading.
func upgradeInput(cluster *clusterv1.Cluster, current *desired.Current) (in upgrade.Input, err error) {
	topology := cluster.Spec.Topology
	in.Version = topology.Version
	if in.Concurrency, err = concurrency(cluster); err != nil {
		return in, err
	}
	if in.ControlPlane, err = controlPlaneState(cluster, current); err != nil || topology.Workers == nil {
		return in, err
	}
	for i := range topology.Workers.MachineDeployments {
		t := &topology.Workers.MachineDeployments[i]
		w := workersState(t.Name, t.Metadata)
		if md := current.MachineDeployments[t.Name]; md != nil {
			w.Exists, w.Object, w.Version = true, md.Name, versionOf(&md.Spec.Template)
		}
		in.MachineDeployments = append(in.MachineDeployments, w)
	}
	for i := range topology.Workers.MachinePools {
		t := &topology.Workers.MachinePools[i]
		w := workersState(t.Name, t.Metadata)
		if mp := current.MachinePools[t.Name]; mp != nil {
			w.Exists, w.Object, w.Version = true, mp.Name, versionOf(&mp.Spec.Template)
		}
		in.MachinePools = append(in.MachinePools, w)
	}
	return in, nil
}

// upToDate reports whether every part has the version of the topology in its spec. Then the versions of its machines only matter for a
// hook that waits for the end of the upgrade.
func upToDate(in upgrade.Input) bool {
	differs := func(w upgrade.Workers) bool { return w.Exists && w.Version != in.Version }
	return (!in.ControlPlane.Exists || in.ControlPlane.Version == in.Version) &&
		!slices.ContainsFunc(in.MachineDeployments, differs) && !slices.ContainsFunc(in.MachinePools, differs)
}

// findUpgrading sets Upgrading of workers that have machines with another version than their spec.
func (p *Planner) findUpgrading(ctx context.Context, cluster *clusterv1.Cluster, current *desired.Current, in *upgrade.Input) error {
	var machines clusterv1.MachineList
	if err := p.Reader.List(ctx, &machines, p.ListOptions(cluster)...); err != nil {
		return fmt.Errorf("listing Machines: %w", err)
	}
	for i := range in.MachineDeployments {
		w := &in.MachineDeployments[i]
		w.Upgrading = w.Exists && slices.ContainsFunc(machines.Items, func(m clusterv1.Machine) bool {
			return m.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel] == w.TopologyName &&
				m.Spec.Version != nil && *m.Spec.Version != w.Version
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
		if err := p.findUpgradingPool(ctx, cluster, current.MachinePools[w.TopologyName], w); err != nil {
			return err
		}
	}
	return nil
}

func workersState(name string, meta clusterv1.ObjectMeta) upgrade.Workers {
	_, deferred := meta.Annotations[clusterv1.ClusterTopologyDeferUpgradeAnnotation]
	_, hold := meta.Annotations[clusterv1.ClusterTopologyHoldUpgradeSequenceAnnotation]
	return upgrade.Workers{TopologyName: name, Deferred: deferred, Hold: hold}
}

func versionOf(t *clusterv1.MachineTemplateSpec) string {
	if t.Spec.Version == nil {
		return ""
	}
	return *t.Spec.Version
}

func concurrency(cluster *clusterv1.Cluster) (int, error) {
	value, ok := cluster.Annotations[clusterv1.ClusterTopologyUpgradeConcurrencyAnnotation]
	if !ok {
		return 1, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("annotation %s is %q: it must be an integer of at least 1", clusterv1.ClusterTopologyUpgradeConcurrencyAnnotation, value)
	}
	return n, nil
}

func controlPlaneState(cluster *clusterv1.Cluster, current *desired.Current) (state upgrade.ControlPlane, err error) {
	if current.ControlPlane == nil {
		return state, nil
	}
	state.Exists = true
	cp := contract.ControlPlaneOf(current.ControlPlane)
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
