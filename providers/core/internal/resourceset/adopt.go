package resourceset

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// adopt adds the finalizer, without which nothing is applied.
func adopt(_ context.Context, s *scope) (step.Result, error) {
	controllerutil.AddFinalizer(s.set, addonsv1.ClusterResourceSetFinalizer)
	return step.Checkpoint(), nil
}
