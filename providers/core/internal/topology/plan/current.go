package plan

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/desired"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/names"
	"sigs.k8s.io/cluster-api/sdk/contract"
)

// current reads the current control plane and workers of a Cluster's topology.
func (p *Planner) current(ctx context.Context, cluster *clusterv1.Cluster, b *desired.Blueprint) (*desired.Current, error) {
	current := &desired.Current{
		Workers:     map[desired.WorkersID]desired.WorkersObject{},
		Terminating: sets.New[string](),
	}
	name, err := names.ControlPlane(cluster, b.Class)
	if err != nil {
		return nil, err
	}
	kind := b.ControlPlane.GroupVersionKind()
	kind.Kind = contract.KindOf(kind.Kind)
	if current.Contract, err = p.External.Versions.Contract(ctx, kind); err != nil {
		return nil, err
	}
	ref := &corev1.ObjectReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: name}
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
	var pools clusterv1.MachinePoolList
	if err := p.Reader.List(ctx, &pools, Labeled(cluster)...); err != nil {
		return fmt.Errorf("listing MachinePools: %w", err)
	}
	for i := range deployments.Items {
		if err := addWorkers(current, clusterv1.ClusterTopologyMachineDeploymentNameLabel,
			desired.WorkersObject{Deployment: &deployments.Items[i]}); err != nil {
			return err
		}
	}
	for i := range pools.Items {
		if err := addWorkers(current, clusterv1.ClusterTopologyMachinePoolNameLabel, desired.WorkersObject{Pool: &pools.Items[i]}); err != nil {
			return err
		}
	}
	return nil
}

// addWorkers adds workers by their topology name, which is the value of the label, and the object name of workers that are
// being deleted to Terminating.
func addWorkers(current *desired.Current, label string, workers desired.WorkersObject) error {
	object := workers.Object()
	if !object.GetDeletionTimestamp().IsZero() {
		current.Terminating.Insert(object.GetName())
		return nil
	}
	id := desired.WorkersID{Kind: workers.Kind(), Name: object.GetLabels()[label]}
	if other, exists := current.Workers[id]; exists {
		return fmt.Errorf("%ss %s and %s both have the topology name %q: delete one of them",
			id.Kind, other.Object().GetName(), object.GetName(), id.Name)
	}
	current.Workers[id] = workers
	return nil
}
