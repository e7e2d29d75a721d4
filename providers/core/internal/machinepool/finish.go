package machinepool

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// finish removes the finalizer.
func finish(_ context.Context, s *scope) (step.Result, error) {
	controllerutil.RemoveFinalizer(s.pool, clusterv1.MachinePoolFinalizer)
	return step.Done(), nil
}
