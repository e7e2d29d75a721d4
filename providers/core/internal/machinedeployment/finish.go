package machinedeployment

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// finish removes the finalizer. A MachineSet that the cache does not show yet is deleted by the garbage collector.
func finish(_ context.Context, s *scope) (step.Result, error) {
	controllerutil.RemoveFinalizer(s.deployment, clusterv1.MachineDeploymentFinalizer)
	return step.Done(), nil
}
