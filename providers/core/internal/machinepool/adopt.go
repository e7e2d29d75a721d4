package machinepool

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// adopt adds the cluster name label, the Cluster as owner, and the finalizer.
func adopt(_ context.Context, s *scope) (step.Result, error) {
	ownership.AddCluster(s.pool, s.cluster)
	controllerutil.AddFinalizer(s.pool, clusterv1.MachinePoolFinalizer)
	return step.Checkpoint(), nil
}
