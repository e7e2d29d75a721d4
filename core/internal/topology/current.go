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
	"sigs.k8s.io/cluster-api/core/internal/topology/desired"
	"sigs.k8s.io/cluster-api/core/internal/topology/names"
	"sigs.k8s.io/cluster-api/core/internal/topology/upgrade"
	"sigs.k8s.io/cluster-api/provider/contract"
)

// current reads what there is of a Cluster's topology.
func (p *Planner) current(ctx context.Context, cluster *clusterv1.Cluster, b *desired.Blueprint) (*desired.Current, error) {
	now := &desired.Current{
		MachineDeployments: map[string]*clusterv1.MachineDeployment{},
		MachinePools:       map[string]*clusterv1.MachinePool{},
		Leaving:            sets.New[string](),
	}
	name, err := names.ControlPlane(cluster, b.Class)
	if err != nil {
		return nil, err
	}
	kind := b.ControlPlane.GroupVersionKind()
	ref := &corev1.ObjectReference{APIVersion: kind.GroupVersion().String(), Kind: contract.KindOf(kind.Kind), Name: name}
	// At the version that is watched: another one has a cache of its own, which may lag behind.
	now.ControlPlane, err = p.External.Exact(ctx, ref, cluster.Namespace)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the control plane: %w", err)
	}
	return now, p.workers(ctx, cluster, now)
}

// workers adds MachineDeployments and MachinePools to now.
func (p *Planner) workers(ctx context.Context, cluster *clusterv1.Cluster, now *desired.Current) error {
	var deployments clusterv1.MachineDeploymentList
	if err := p.Reader.List(ctx, &deployments, p.Of(cluster)...); err != nil {
		return fmt.Errorf("listing MachineDeployments: %w", err)
	}
	err := sortOut("MachineDeployments", clusterv1.ClusterTopologyMachineDeploymentNameLabel, deployments.Items, now.Leaving, now.MachineDeployments)
	if err != nil {
		return err
	}
	var pools clusterv1.MachinePoolList
	if err := p.Reader.List(ctx, &pools, p.Of(cluster)...); err != nil {
		return fmt.Errorf("listing MachinePools: %w", err)
	}
	return sortOut("MachinePools", clusterv1.ClusterTopologyMachinePoolNameLabel, pools.Items, now.Leaving, now.MachinePools)
}

// sortOut puts workers where they belong: by their name in the topology, which label has, or among the names of those
// that are being deleted.
func sortOut[T any, W interface {
	*T
	client.Object
}](kind, label string, workers []T, leaving sets.Set[string], present map[string]W) error {
	for i := range workers {
		w := W(&workers[i])
		if !w.GetDeletionTimestamp().IsZero() {
			leaving.Insert(w.GetName())
			continue
		}
		name := w.GetLabels()[label]
		if other := present[name]; other != nil {
			return fmt.Errorf("%s %s and %s are both for %q of the topology: delete one of them", kind, other.GetName(), w.GetName(), name)
		}
		present[name] = w
	}
	return nil
}

// versions decides which version every part is to have.
func (p *Planner) versions(ctx context.Context, cluster *clusterv1.Cluster, now *desired.Current) (upgrade.Plan, error) {
	topology := cluster.Spec.Topology
	in := upgrade.Input{Version: topology.Version}
	var err error
	if in.Concurrency, err = concurrency(cluster); err != nil {
		return upgrade.Plan{}, err
	}
	if in.ControlPlane, err = controlPlaneState(cluster, now); err != nil {
		return upgrade.Plan{}, err
	}
	if topology.Workers != nil {
		for i := range topology.Workers.MachineDeployments {
			t := &topology.Workers.MachineDeployments[i]
			w := workersState(t.Name, t.Metadata)
			if md := now.MachineDeployments[t.Name]; md != nil {
				w.Exists, w.Object, w.Version = true, md.Name, version(&md.Spec.Template)
			}
			in.MachineDeployments = append(in.MachineDeployments, w)
		}
		for i := range topology.Workers.MachinePools {
			t := &topology.Workers.MachinePools[i]
			w := workersState(t.Name, t.Metadata)
			if mp := now.MachinePools[t.Name]; mp != nil {
				w.Exists, w.Object, w.Version = true, mp.Name, version(&mp.Spec.Template)
			}
			in.MachinePools = append(in.MachinePools, w)
		}
	}
	if settled(in) {
		return upgrade.Compute(in), nil
	}
	if err := p.findUpgrading(ctx, cluster, now, &in); err != nil {
		return upgrade.Plan{}, err
	}
	return upgrade.Compute(in), nil
}

// settled says whether every part has the version that the topology asks for in its spec. Then it does not matter
// what machines have.
func settled(in upgrade.Input) bool {
	other := func(w upgrade.Workers) bool { return w.Exists && w.Version != in.Version }
	return (!in.ControlPlane.Exists || in.ControlPlane.Version == in.Version) &&
		!slices.ContainsFunc(in.MachineDeployments, other) && !slices.ContainsFunc(in.MachinePools, other)
}

// findUpgrading marks the workers that have machines of another version than their spec.
func (p *Planner) findUpgrading(ctx context.Context, cluster *clusterv1.Cluster, now *desired.Current, in *upgrade.Input) error {
	var machines clusterv1.MachineList
	if err := p.Reader.List(ctx, &machines, p.Of(cluster)...); err != nil {
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
		have, err := p.PoolVersions(ctx, cluster, now.MachinePools[w.TopologyName])
		if err != nil {
			return fmt.Errorf("reading the versions of the Nodes of MachinePool %s: %w", w.Object, err)
		}
		w.Upgrading = slices.ContainsFunc(have, func(v string) bool { return v != w.Version })
	}
	return nil
}

func workersState(name string, meta clusterv1.ObjectMeta) upgrade.Workers {
	_, deferred := meta.Annotations[clusterv1.ClusterTopologyDeferUpgradeAnnotation]
	_, hold := meta.Annotations[clusterv1.ClusterTopologyHoldUpgradeSequenceAnnotation]
	return upgrade.Workers{TopologyName: name, Deferred: deferred, Hold: hold}
}

func version(t *clusterv1.MachineTemplateSpec) string {
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
		return 0, fmt.Errorf("annotation %s is %q: it must be a whole number, at least 1", clusterv1.ClusterTopologyUpgradeConcurrencyAnnotation, value)
	}
	return n, nil
}

func controlPlaneState(cluster *clusterv1.Cluster, now *desired.Current) (state upgrade.ControlPlane, err error) {
	if now.ControlPlane == nil {
		return state, nil
	}
	state.Exists = true
	cp := contract.ControlPlaneOf(now.ControlPlane)
	want, err := cp.Version()
	if err != nil {
		return state, err
	}
	if want != nil {
		state.Version = *want
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
