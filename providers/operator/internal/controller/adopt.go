package controller

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// adopt adds the finalizer before anything is installed.
func adopt(_ context.Context, s *scope) (step.Result, error) {
	controllerutil.AddFinalizer(s.Object, operatorv1.ProviderFinalizer)
	return step.Checkpoint(), nil
}
