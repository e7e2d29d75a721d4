package plan

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/desired"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/names"
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
	if err := p.Reader.List(ctx, &deployments, Labeled(cluster)...); err != nil {
		return fmt.Errorf("listing MachineDeployments: %w", err)
	}
	err := addWorkers("MachineDeployments", clusterv1.ClusterTopologyMachineDeploymentNameLabel, deployments.Items, current.Terminating, current.MachineDeployments)
	if err != nil {
		return err
	}
	var pools clusterv1.MachinePoolList
	if err := p.Reader.List(ctx, &pools, Labeled(cluster)...); err != nil {
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
