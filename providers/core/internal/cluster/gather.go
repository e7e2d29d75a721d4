package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// family is what belongs to a Cluster, as far as its conditions and counters depend on it. The objects are those of the cache: nothing may
// change them.
type family struct {
	deployments []clusterv1.MachineDeployment
	sets        []clusterv1.MachineSet
	pools       []clusterv1.MachinePool
	// machines are those that do not belong to a MachinePool.
	machines []*clusterv1.Machine
	// gates are further conditions that the Cluster is available by.
	gates []clusterv1.ClusterAvailabilityGate
}

// gather reads what conditions and counters depend on, from caches.
func (c *Controller) gather(ctx context.Context, s *scope) (step.Result, error) {
	if !started(s.Cluster) || (s.DeletionTimestamp != nil && !controllerutil.ContainsFinalizer(s.Cluster, clusterv1.ClusterFinalizer)) {
		return step.Done(), nil
	}
	s.now = c.Clock.Now()
	c.find(ctx, s, &s.Spec.InfrastructureRef, &s.infrastructure)
	c.find(ctx, s, &s.Spec.ControlPlaneRef, &s.plane)
	f, err := c.familyOf(ctx, s.Cluster)
	if err != nil {
		return step.Done(), err
	}
	s.family = f
	return c.observeConnection(ctx, s), nil
}

// find reads an object that no step has read, as while the Cluster is being deleted.
func (c *Controller) find(ctx context.Context, s *scope, ref *clusterv1.ContractVersionedObjectReference, p *reference.Found) {
	if !ref.IsDefined() || p.Looked {
		return
	}
	obj, err := c.follow.Follow(ctx, ref, s.Namespace)
	if err != nil || obj == nil {
		*p = reference.FoundOf(contract.Object{}, false, err)
		return
	}
	whole, err := c.follow.Reader.Versions.Object(ctx, obj)
	*p = reference.FoundOf(whole, err == nil, err)
}

func (c *Controller) familyOf(ctx context.Context, cluster *clusterv1.Cluster) (*family, error) {
	deployments, sets := &clusterv1.MachineDeploymentList{}, &clusterv1.MachineSetList{}
	pools, machines := &clusterv1.MachinePoolList{}, &clusterv1.MachineList{}
	for _, list := range []client.ObjectList{deployments, sets, pools, machines} {
		err := c.Client.List(ctx, list, ownership.InCluster(cluster.Namespace, cluster.Name), client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("listing what belongs to Cluster %s: %w", cluster.Name, err)
		}
	}
	f := &family{deployments: deployments.Items, sets: sets.Items, pools: pools.Items}
	for i := range machines.Items {
		if m := &machines.Items[i]; m.Labels[clusterv1.MachinePoolNameLabel] == "" {
			f.machines = append(f.machines, m)
		}
	}
	gates, err := c.gates(ctx, cluster)
	f.gates = gates
	return f, err
}

// gates returns the availability gates of the Cluster, or else those of its ClusterClass.
func (c *Controller) gates(ctx context.Context, cluster *clusterv1.Cluster) ([]clusterv1.ClusterAvailabilityGate, error) {
	if len(cluster.Spec.AvailabilityGates) > 0 || !cluster.Spec.Topology.IsDefined() {
		return cluster.Spec.AvailabilityGates, nil
	}
	class := &clusterv1.ClusterClass{}
	err := c.classes.Get(ctx, cluster.GetClassKey(), class, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading the availability gates of ClusterClass %s: %w", cluster.GetClassKey(), err)
	}
	return class.Spec.AvailabilityGates, nil
}

// connection is the state of the connection to the API server of the Cluster.
type connection struct {
	up bool
	// since is when a connection was lost, or when it was first missed.
	since time.Time
}

// defaultConnectionGrace is Options.ConnectionGrace if it is not set.
const defaultConnectionGrace = 50 * time.Second

// observeConnection asks for a connection to an initialized control plane, and looks again when a lost one has to be reported.
func (c *Controller) observeConnection(ctx context.Context, s *scope) step.Result {
	if c.connection == nil || s.DeletionTimestamp != nil || !condition.IsTrue(s.Cluster, clusterv1.ControlPlaneInitializedV1Beta1Condition) {
		return step.Done()
	}
	found := c.connection(ctx, client.ObjectKeyFromObject(s.Cluster))
	s.connection = &found
	s.connectionGrace = cmp.Or(c.connectionGrace, defaultConnectionGrace)
	left := found.since.Add(s.connectionGrace).Sub(s.now)
	if found.up || left <= 0 {
		return step.Done()
	}
	return step.Again(left)
}

// connections returns the state of connections to workload clusters.
func connections(clusters *remote.Clusters) func(context.Context, types.NamespacedName) connection {
	return func(ctx context.Context, key types.NamespacedName) connection {
		_, err := clusters.Get(ctx, key)
		if away, ok := errors.AsType[*remote.NotConnectedError](err); ok {
			return connection{since: away.Since}
		}
		return connection{up: err == nil}
	}
}

// itself maps a Cluster whose connection changed to itself.
func itself(_ context.Context, cluster types.NamespacedName) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: cluster}}
}
