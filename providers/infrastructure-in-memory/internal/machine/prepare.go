package machine

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/kinds"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/lab"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// prepare waits for the prerequisites of a machine, and opens the workload cluster. A new machine does not report the wait at once: see
// step.Progress.
func (c *Controller) prepare(ctx context.Context, s *scope) (step.Result, error) {
	switch {
	case !s.cluster.Spec.InfrastructureRef.IsDefined():
		return step.Wait("spec.infrastructureRef of Cluster " + s.cluster.Name + " to name a resource of kind " + c.kinds.ClusterKind).
			Because(inmemoryv1.WaitingForClusterInfrastructureReason), nil
	case !ptr.Deref(s.cluster.Status.Initialization.InfrastructureProvisioned, false):
		return step.Wait("the infrastructure of Cluster " + s.cluster.Name).Because(inmemoryv1.WaitingForClusterInfrastructureReason), nil
	case s.secret != "":
	case !s.isControlPlane() && !condition.IsTrue(s.cluster, clusterv1.ControlPlaneInitializedV1Beta1Condition):
		return step.Wait("the control plane to be initialized").Because(inmemoryv1.WaitingControlPlaneInitializedReason), nil
	default:
		return step.Wait("the bootstrap data of Machine " + s.machine.Name).Because(inmemoryv1.WaitingForBootstrapDataReason), nil
	}
	infrastructure, ok, err := c.infrastructure(ctx, s.cluster)
	if err != nil {
		return step.Done(), err
	}
	if !ok {
		return step.Wait("spec.infrastructureRef of Cluster " + s.cluster.Name + " to name a " + c.kinds.ClusterKind + " with backend inMemory").
			Because(inmemoryv1.WaitingForClusterInfrastructureReason), nil
	}
	if !infrastructure.DeletionTimestamp.IsZero() {
		// Opening the workload cluster now would recreate it, and nothing would close it.
		return step.Wait("deletion: " + infrastructure.Kind + " " + infrastructure.Name + " is being deleted"), nil
	}
	// The cloud may not have the faults of the annotation yet. The controller of that object reports invalid ones.
	faults, err := lab.Faults(infrastructure)
	s.dead = err == nil && slices.Contains(faults.DeadMachines, s.obj.Name)
	c.lab.Inherit(infrastructure, s.cluster) // The controller of clusters ignores externally managed ones.
	s.group, s.endpoint, err = c.lab.Open(ctx, infrastructure, client.ObjectKeyFromObject(s.cluster))
	return step.Done().KeepCondition(), err
}

// infrastructure returns the infrastructure of a Cluster, which may have another backend: then it returns false.
func (c *Controller) infrastructure(ctx context.Context, cluster *clusterv1.Cluster) (kinds.Cluster, bool, error) {
	obj, name := c.kinds.NewCluster(), cluster.Spec.InfrastructureRef.Name
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, obj); err != nil {
		return kinds.Cluster{}, false, fmt.Errorf("reading %s %s: %w", c.kinds.ClusterKind, name, err)
	}
	of, ok := c.kinds.ClusterOf(obj)
	return of, ok, nil
}
