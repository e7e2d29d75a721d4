package machinepool

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// adopt adds the cluster name label, the Cluster as owner, and the finalizer.
func adopt(_ context.Context, s *scope) (step.Result, error) {
	p := s.pool
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	p.Labels[clusterv1.ClusterNameLabel] = p.Spec.ClusterName
	p.OwnerReferences, _ = ownership.Ensure(p.OwnerReferences,
		ownership.Reference(s.cluster, clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind), false))
	controllerutil.AddFinalizer(p, clusterv1.MachinePoolFinalizer)
	return step.Checkpoint(), nil
}
